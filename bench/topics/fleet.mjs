// Fleets of 100 and 1,000 processes in virtual time: leases beside three rules of others.
import { bar } from 'headgate-bench/cells';
import { table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { simulateFleet } from '../support/fleet.mjs';

const SEED = 202_612;
const ACCOUNTS = 1_000_000;
const LIMITS = ['6000/1m', '100000/1h'];
const RULES = {
  each: 'one call for each decision',
  leases: 'leases',
  parts: 'equal parts, no calls',
  later: 'count, and tell later',
};
const FLEETS = {
  '100 processes, each request at any of them': { processes: 100, homeShare: 0 },
  '100 processes, 90 % of an account’s requests at one': { processes: 100, homeShare: 0.9 },
  '1,000 processes, each request at any of them': { processes: 1_000, homeShare: 0 },
  '1,000 processes, 90 % of an account’s requests at one': { processes: 1_000, homeShare: 0.9 },
};

export async function measure({ quick, progress }) {
  const [perSecond, seconds] = quick ? [20_000, 4] : [50_000, 10];
  const fleets = {};
  for (const [name, fleet] of Object.entries(FLEETS)) {
    const settings = { ...fleet, accounts: ACCOUNTS, exponent: 1.1, perSecond, seconds, limits: LIMITS, seed: SEED };
    fleets[name] = {};
    for (const rule of Object.keys(RULES)) {
      progress(`${name}: ${RULES[rule]}`);
      fleets[name][rule] = simulateFleet({ ...settings, rule });
    }
  }
  return { perSecond, seconds, fleets };
}

export function report({ perSecond, seconds, fleets }) {
  const share = (count, { exactly }) => `${((100 * count) / exactly).toFixed(2)} %`;
  const rows = Object.entries(fleets).flatMap(([name, rules]) =>
    Object.entries(rules).map(([rule, figures]) => [
      name,
      rule === 'leases' ? `**${RULES[rule]}**` : RULES[rule],
      share(figures.over, figures),
      share(figures.missed, figures),
      (figures.trips / figures.decisions).toFixed(3),
    ]),
  );
  return {
    title: 'Leases in a large fleet',
    markdown: `
Virtual time, not a measurement: ${whole(ACCOUNTS)} accounts by Zipf’s law with exponent 1.1, ${whole(perSecond)} requests
per second for ${seconds} seconds, ${LIMITS.join(' and ')}. The limiter, the leases and the memory store are headgate’s
own code; a call takes 0.5 ms.

- *Equal parts*: each process has its part of every limit, as Tyk’s default limiter does.
- *Count, and tell later*: each process counts by itself, and tells all others every 500 ms, as gubernator’s GLOBAL does.
  One message counts as one call, whatever it contains.

${table(['fleet', 'rule', 'admitted beyond the limit', 'wrongly rejected', 'calls per decision'], rows)}`,
    targets: Object.entries(fleets).flatMap(([name, { leases }]) => [
      ...targetRow(`${name}: admitted beyond the limit`, leases.over, atMost(0), String),
      ...targetRow(`${name}: wrongly rejected`, leases.missed / leases.exactly, atMost(0.01, '1 %'), (value) =>
        value.toPrecision(2),
      ),
    ]),
    chart: {
      title: 'A large fleet: admitted beyond the limit, or wrongly rejected',
      unit: 'percent of what one process would admit',
      better: 'less',
      panels: Object.entries(fleets).map(([name, rules]) => ({
        title: name,
        bars: Object.entries(rules).flatMap(([rule, figures]) =>
          bar(RULES[rule], rule === 'leases' ? 'ours' : 'peer', {
            median: (100 * (figures.over + figures.missed)) / figures.exactly,
          }),
        ),
      })),
    },
  };
}
