// @ts-check
/** The language of `%%avial` cells and of files, for CodeMirror. */

import { nextMagicToken, nextTokens } from './tokens.js';

/**
 * @param {any} language the module `@codemirror/language`
 * @param {any} highlight the module `@lezer/highlight`
 * @param {{magic: boolean}} options whether the first line that is not blank is a magic's
 */
export function avialLanguage({ StreamLanguage }, { tags }, { magic }) {
  return StreamLanguage.define({
    name: 'avial',
    startState: () => ({ magic, depth: 0, rest: /** @type {[string, string][]} */ ([]) }),
    copyState: (state) => ({ ...state, rest: [...state.rest] }),
    token(stream, state) {
      if (stream.sol()) state.rest = [];
      if (state.magic) return magicToken(stream, state);
      if (state.rest.length === 0) state.rest = nextTokens(stream.string, stream.pos);
      const [text, kind] = state.rest.shift() ?? ['', 'text'];
      stream.pos += Math.max(1, text.length);
      if (kind === 'punctuation') state.depth = Math.max(0, state.depth + (text === '{' ? 1 : text === '}' ? -1 : 0));
      return styled(kind);
    },
    /** Two blanks for each block that is open; the line that closes one stands with the one that opened it. */
    indent: (state, after) => INDENT * Math.max(0, state.depth - (after.startsWith('}') ? 1 : 0)),
    languageData: { indentOnInput: /^\s*\}$/, commentTokens: { line: '//' }, closeBrackets: { brackets: ['(', '[', '{', '"'] } },
    tokenTable: stylesOf(tags),
  });
}

function magicToken(stream, state) {
  const [text, kind] = nextMagicToken(stream.string, stream.pos);
  stream.pos += Math.max(1, text.length);
  if (stream.eol() && stream.string.trim() !== '') state.magic = false;
  return styled(kind);
}

/** Names of CodeMirror's own old modes (`variable`, `type`) would win against our table. */
function styled(/** @type {string} */ kind) {
  return UNSTYLED.has(kind) ? null : `avial-${kind}`;
}

const INDENT = 2;

const UNSTYLED = new Set(['blank', 'name', 'text', 'rest']);

/** Which of JupyterLab's colours a kind of token has. */
function stylesOf(tags) {
  return {
    'avial-comment': tags.comment,
    'avial-function': tags.definition(tags.name),
    'avial-string': tags.string,
    'avial-variable': tags.special(tags.variableName),
    'avial-label': tags.labelName,
    'avial-constant': tags.atom,
    'avial-type': tags.standard(tags.variableName),
    'avial-keyword': tags.keyword,
    'avial-number': tags.number,
    'avial-operator': tags.operator,
    'avial-punctuation': tags.punctuation,
    'avial-magic': tags.meta,
    'avial-option': tags.attributeName,
    'avial-value': tags.string,
  };
}
