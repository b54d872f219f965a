import fc from 'fast-check';

// A mutant is killed by the first failure. The shortest history of it would not be read.
fc.configureGlobal({ endOnFailure: true });
