/** The peer that the service ought to be compared with, and why it is not. */
export const EMAILENGINE = {
  name: 'EmailEngine 2.79.2',
  reason: 'see below',
  details: `**EmailEngine is not measured**: it could not be installed from the npm registry (tried on 23 and 27 November 2026).

- It is not on npm: \`npm view emailengine-app\` answers 404. Its makers publish programs, a container image and the
  source code.
- \`npm ci --omit=dev\` in the source code of release 2.79.2 ends with 404 for \`pubface-1.1.6.tgz\`. Other releases fail
  the same way: 2.59.1 at \`@postalsys/email-ai-tools-1.11.0\`, 2.55.4 at \`@bull-board/hapi-6.12.7\`. With other versions of its dependencies it
  would not be the program that its makers release.
- Its licence allows a trial of 14 days. The key for it comes from postalsys.com, on a click in its web interface. Without a
  key, it ends the workers that send about 20 minutes after its start. This benchmark does not rely on those minutes.

*BullMQ + nodemailer* has the parts that EmailEngine sends with: both put emails into a BullMQ queue in Redis, and send
them with nodemailer.`,
};
