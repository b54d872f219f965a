// Lua scripts that decide four windows on one record. They are put together from parts, so that two scripts can differ
// in one part only.
const WINDOWS = [1, 2, 3, 4];
const each = (line, separator = '\n') => WINDOWS.map((i) => line.replaceAll('#', i)).join(separator);

/** `s1, c1, … s4, c4`: when each window started, and its count. */
const VALUES = each('s#,c#', ',');
const CHARGED = each('s#,c#+cost', ',');
const PLAN = `cost,${each('m#,d#', ',')}`;
const DOUBLES = 'd'.repeat(8);

const CLOCKS = {
  TIME: `local time = redis.call('TIME') local now = time[1] * 1000 + math.floor(time[2] / 1000)`,
  argument: 'local now = ARGV[#ARGV] + 0',
};

const PLANS = {
  'nine arguments': `local ${PLAN} = ${Array.from({ length: 9 }, (_, i) => `ARGV[${i + 1}]+0`)}`,
  'one argument of JSON': `local ${PLAN} = unpack(cjson.decode(ARGV[1]))`,
  'one argument of packed doubles': `local ${PLAN} = struct.unpack('d${DOUBLES}', ARGV[1])`,
};

/** Set VALUES if there is a record. */
const READS = {
  doubles: `local packed = redis.call('GET', key) if packed then ${VALUES} = struct.unpack('${DOUBLES}', packed) end`,
  text: `local packed = redis.call('GET', key) if packed then
    ${VALUES} = string.match(packed, '^${Array(8).fill('(%d+)').join(',')}$')
    ${VALUES} = ${each('s#+0,c#+0', ',')} end`,
  cmsgpack: `local packed = redis.call('GET', key) if packed then ${VALUES} = unpack(cmsgpack.unpack(packed)) end`,
  'hash, one field per number': `local f = redis.call('HMGET', key, ${each("'s#','c#'", ',')})
    if f[1] then ${VALUES} = ${Array.from({ length: 8 }, (_, i) => `f[${i + 1}]+0`)} end`,
  'hash, one field per window': `local f = redis.call('HMGET', key, ${each("'w#'", ',')}) if f[1] then
    ${each("s#,c# = struct.unpack('dd', f[#])")} end`,
};

const pack = `struct.pack('${DOUBLES}', ${CHARGED})`;
const WRITES = {
  doubles: `redis.call('SET', key, ${pack}, 'PX', ends - now)`,
  text: `redis.call('SET', key, string.format('${Array(8).fill('%.0f').join(',')}', ${CHARGED}), 'PX', ends - now)`,
  cmsgpack: `redis.call('SET', key, cmsgpack.pack({${CHARGED}}), 'PX', ends - now)`,
  'hash, one field per number': `redis.call('HSET', key, ${each("'s#',s#,'c#',c#+cost", ',')}) redis.call('PEXPIRE', key, ends - now)`,
  'hash, one field per window': `redis.call('HSET', key, ${each("'w#',struct.pack('dd',s#,c#+cost)", ',')}) redis.call('PEXPIRE', key, ends - now)`,
  'SET PXAT': `redis.call('SET', key, ${pack}, 'PXAT', ends)`,
  'SET PX or SET KEEPTTL': `if ends == ended then redis.call('SET', key, ${pack}, 'KEEPTTL')
    else redis.call('SET', key, ${pack}, 'PX', ends - now) end`,
  'SET PX or SETRANGE': `if ends == ended then redis.call('SETRANGE', key, 0, ${pack})
    else redis.call('SET', key, ${pack}, 'PX', ends - now) end`,
};

const REPLIES = {
  'nine integers': `{ now, ${VALUES} }`,
  'a string of decimals': `string.format('${Array(9).fill('%.0f').join(' ')}', now, ${VALUES})`,
  'a string of packed doubles': `struct.pack('d${DOUBLES}', now, ${VALUES})`,
};

const decide = (read, write) => `local ${VALUES} ${READS[read]}
local ended = 0
if s1 then
${each('if s#+d# > ended then ended = s#+d# end')}
${each('if now >= s#+d# then s#,c# = now,0 end')}
else
${each('s#,c# = now,0')}
end
local ends = 0
${each('if s#+d# > ends then ends = s#+d# end')}
if ${each('c#+cost <= m#', ' and ')} then ${WRITES[write]} end`;

/** Like `consume.lua`, for one plan, one route and four windows, but without the checks of the record's content. */
export function encodingScript({
  clock = 'TIME',
  plan = 'nine arguments',
  read = 'doubles',
  write = read,
  reply = 'nine integers',
  records = 1,
}) {
  const start = `${CLOCKS[clock]} ${PLANS[plan]}`;
  if (records === 1) return `${start} local key = KEYS[1] ${decide(read, write)} return ${REPLIES[reply]}`;
  return `${start} local reply = {} for i = 1, #KEYS do local key = KEYS[i] ${decide(read, write)} reply[i] = ${REPLIES[reply]} end return reply`;
}

/** The arguments of the script, without its keys. */
export function encodingArguments({ clock = 'TIME', plan = 'nine arguments' }, durations, max) {
  const numbers = [1, ...durations.flatMap((duration) => [max, duration])];
  const args = {
    'nine arguments': () => numbers.map(String),
    'one argument of JSON': () => [JSON.stringify(numbers)],
    'one argument of packed doubles': () => [Buffer.from(new Float64Array(numbers).buffer)],
  };
  return () => [...args[plan](), ...(clock === 'argument' ? [String(Date.now())] : [])];
}
