/** What is assumed, not measured. Times are in microseconds unless the name says otherwise. */
export const PARAMETERS = {
  perAccountPerDay: 100,
  /** Rate of the busiest hour divided by the mean rate of a day. */
  peakFactor: 3,
  exponent: 0.8,
  burst: 1,
  hotShare: 0.05,
  window: { max: 60, micros: 60e6 },
  longestWindowMicros: 86_400e6,
  /** The default of `denyCacheMaxMs`. */
  denialMicros: 1e6,
  oneWayMedian: 150,
  oneWaySigma: 0.5,
  gatewayUtilisation: 0.3,
  shardUtilisation: 0.6,
  leastGateways: 2,
};

/**
 * Settings of `simulate` for a fleet at its peak, without `decisions`. One shard is one server; more shards are a
 * cluster, and on a cluster a call costs both sides more.
 */
export function settingsOf({ accounts, hotShare = 0, shards, values, parameters = PARAMETERS }) {
  const { perAccountPerDay, peakFactor, gatewayUtilisation, leastGateways, oneWayMedian, oneWaySigma } = parameters;
  const perSecond = (accounts * perAccountPerDay * peakFactor) / 86_400;
  const isCluster = shards > 1;
  const gateway = isCluster ? values.clusterGateway : values.serverGateway;
  const call = isCluster ? values.clusterCall : values.serverCall;
  const busyGateways = (perSecond * gateway) / 1e6;
  return {
    ...parameters,
    accounts,
    hotShare,
    perSecond,
    shards,
    gateways: Math.max(leastGateways, Math.ceil(busyGateways / gatewayUtilisation)),
    cpu: { request: gateway / 2, answer: gateway / 2, call: 0 },
    serviceOf: (records) => call + values.record * records,
    oneWay: (random) => random.lognormal(oneWayMedian, oneWaySigma),
  };
}
