import protobuf from 'protobufjs';
import type { RateLimitAnswer, RateLimitCall } from './rate-limit-service.ts';

/** The path of the method in HTTP/2. */
export const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/** The fields that the service reads and writes, with their numbers in the API of Envoy, version 3. */
const MESSAGES = `
syntax = "proto3";
message Entry { string key = 1; string value = 2; }
message Hits { uint64 value = 1; }
message Descriptor { repeated Entry entries = 1; Hits hits_addend = 3; }
message Request { string domain = 1; repeated Descriptor descriptors = 2; uint32 hits_addend = 3; }
message Limit { uint32 requests_per_unit = 1; int32 unit = 2; string name = 3; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message Status { int32 code = 1; Limit current_limit = 2; uint32 limit_remaining = 3; Duration duration_until_reset = 4; }
message Field { string key = 1; string value = 2; }
message Response {
  int32 overall_code = 1;
  repeated Status statuses = 2;
  repeated Field response_headers_to_add = 3;
  bytes raw_body = 5;
}`;

const { root } = protobuf.parse(MESSAGES);
const Request = root.lookupType('Request');
const Response = root.lookupType('Response');

const OK = 1;
const OVER_LIMIT = 2;
const MAX_UINT32 = 4_294_967_295;
/** The units of a limit. A window of any other length has none. */
const UNITS: ReadonlyMap<number, number> = new Map([
  [1_000, 1],
  [60_000, 2],
  [3_600_000, 3],
  [86_400_000, 4],
]);

interface RequestMessage {
  readonly domain: string;
  readonly descriptors: readonly {
    readonly entries: RateLimitCall['descriptors'][number]['entries'];
    readonly hitsAddend?: { readonly value: number } | null;
  }[];
  readonly hitsAddend: number;
}

/** @throws RangeError or Error if the bytes are not such a message */
export function readCall(bytes: Uint8Array): RateLimitCall {
  const options = { longs: Number, defaults: true, arrays: true };
  const { domain, descriptors, hitsAddend } = Request.toObject(Request.decode(bytes), options) as RequestMessage;
  return {
    domain,
    hitsAddend,
    descriptors: descriptors.map(({ entries, hitsAddend: own }) => ({ entries, hitsAddend: own?.value })),
  };
}

export function writeAnswer({ isOverLimit, descriptors, headers, body }: RateLimitAnswer): Buffer {
  const message = {
    overallCode: isOverLimit ? OVER_LIMIT : OK,
    statuses: descriptors.map(({ outcome, shown }) => ({
      code: outcome === 'rejected' || outcome === 'unknown_account' ? OVER_LIMIT : OK,
      ...(shown === undefined ? {} : stateOf(shown)),
    })),
    responseHeadersToAdd: Object.entries(headers).flatMap(([key, value]) =>
      [value].flat().map((each) => ({ key, value: each })),
    ),
    rawBody: Buffer.from(body ?? ''),
  };
  return Buffer.from(Response.encode(Response.fromObject(message)).finish());
}

function stateOf({
  limit,
  max,
  remaining,
  durationMs,
  resetMs,
  unit: counted,
}: NonNullable<RateLimitAnswer['descriptors'][number]['shown']>) {
  const unit = UNITS.get(durationMs);
  return {
    ...(unit === undefined
      ? {}
      : {
          currentLimit: {
            requestsPerUnit: Math.min(max, MAX_UINT32),
            unit,
            name: counted === undefined ? limit : `${limit}-${counted}`,
          },
        }),
    limitRemaining: Math.min(remaining, MAX_UINT32),
    durationUntilReset: { seconds: Math.floor(resetMs / 1_000), nanos: (resetMs % 1_000) * 1_000_000 },
  };
}
