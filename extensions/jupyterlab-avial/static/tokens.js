// @ts-check
/**
 * The tokens of MLIR and of avial's notation: the same rules in the same order as the Pygments lexer
 * of avial_lab/plot/page/lexers.py (a test compares what they say of the same texts). No token is longer
 * than a line.
 */

const WORD = '[\\p{L}\\p{N}_]';
const START = `(?<!${WORD})`;
const END = `(?!${WORD})`;
const ID = '[\\p{L}\\p{N}_$.\\-]+';

/** @type {[string, string | string[]][]} pattern, and its kind or the kinds of its groups */
const RULES = [
  ['\\s+', 'blank'],
  ['//.*', 'comment'],
  ['"(?:[^"\\\\\\n]|\\\\.)*"(?=\\s*\\()', 'function'],
  ['"(?:[^"\\\\\\n]|\\\\.)*"', 'string'],
  ['"(?:[^"\\\\\\n]|\\\\.)*\\\\?$', 'string'], // one that is not closed
  [`%${ID}(?:[:#]\\d+)?`, 'variable'],
  [`@${ID}`, 'label'],
  ['@"[^"\\n]*"', 'label'],
  [`\\^${ID}`, 'label'],
  [`#[A-Za-z_][\\p{L}\\p{N}_.]*`, 'constant'],
  [`(<)((?:(?:\\d+|\\?)x)+)(${WORD}+)?`, ['punctuation', 'number', 'type']],
  [`${START}(?:[su]?i\\d+|f\\d+(?:E\\dM\\d${WORD}*)?|bf16|tf32|index|none)${END}`, 'type'],
  [`${START}(?:memref|tensor|vector|complex|tuple)(?=<)`, 'type'],
  [`!(?:${WORD}|\\.)+`, 'type'],
  [`[a-zA-Z_]${WORD}*(?:\\.${WORD}+)+`, 'function'],
  [`${START}(?:module|func|return|loc|affine_map|affine_set|dense|true|false|unit)${END}`, 'keyword'],
  [
    `${START}(?:reads|writes|after|to|step|blocks|threads|attributes|private|ins|outs|iter_args)${END}`,
    'keyword',
  ],
  [`${START}0x[0-9a-fA-F]+${END}`, 'number'],
  [`-?${START}\\d+\\.\\d*(?:[eE][-+]?\\d+)?`, 'number'],
  [`-?${START}\\d+`, 'number'],
  ['->|==|=|:|\\*|\\+|-|/', 'operator'],
  [`[A-Za-z_]${WORD}*`, 'name'],
  ['[{}()\\[\\]<>,;?]', 'punctuation'],
  ['.', 'text'],
];

/** @type {[RegExp, string[]][]} */
const COMPILED = RULES.map(([pattern, kinds]) => [new RegExp(pattern, 'uy'), [kinds].flat()]);

/**
 * @param {string} line
 * @param {number} at where the next token begins
 * @returns {[string, string][]} one token, or the parts of one: text and kind
 */
export function nextTokens(line, at) {
  for (const [pattern, kinds] of COMPILED) {
    pattern.lastIndex = at;
    const match = pattern.exec(line);
    if (match === null) continue;
    if (kinds.length === 1) return [[match[0], kinds[0]]];
    return /** @type {[string, string][]} */ (
      kinds.map((kind, group) => [match[group + 1] ?? '', kind]).filter(([text]) => text !== '')
    );
  }
  return [[line.slice(at), 'text']]; // half of a surrogate pair
}

/**
 * @param {string} line
 * @returns {[string, string][]} every token: text and kind
 */
export function tokensOf(line) {
  const tokens = [];
  for (let at = 0; at < line.length; ) {
    for (const token of nextTokens(line, at)) {
      tokens.push(token);
      at += token[0].length;
    }
  }
  return tokens;
}

/** The magic's own line: `%%avial --ranks=3 -o deck`. */
const MAGIC = /(?<magic>^%%avial(?!\S))|(?<option>--?[A-Za-z][\w-]*)|(?<value>[^\s=]+)|(?<rest>\s+|=)/y;

/**
 * @param {string} line
 * @param {number} at
 * @returns {[string, string]}
 */
export function nextMagicToken(line, at) {
  MAGIC.lastIndex = at;
  const groups = MAGIC.exec(line)?.groups ?? {};
  const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
  return kind === undefined ? [line.slice(at), 'text'] : [groups[kind], kind];
}

/** Whether a cell is ours: what IPython would give to `%%avial`, blank lines before it or not. */
export function isAvialCell(/** @type {string} */ text) {
  return /^\s*%%avial(?!\S)/.test(text);
}
