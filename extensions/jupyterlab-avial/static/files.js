// @ts-check
/** `.avial` and `.mlir` files: a type of their own, with our colours. */

import { avialLanguage } from './language.js';

/** @param {(name: string) => Promise<any>} lab */
export async function plugin(lab) {
  const { IEditorLanguageRegistry } = await lab('@jupyterlab/codemirror');
  const language = await lab('@codemirror/language');
  const highlight = await lab('@lezer/highlight');
  const { LabIcon } = await lab('@jupyterlab/ui-components');
  return {
    description: 'Files in MLIR and in the notation of avial.',
    requires: [IEditorLanguageRegistry],
    activate: (app, languages) => {
      languages.addLanguage({
        name: 'avial',
        displayName: 'Avial',
        alias: ['mlir'],
        mime: ['text/x-avial', 'text/x-mlir'],
        extensions: ['avial', 'mlir'],
        load: async () =>
          new language.LanguageSupport(avialLanguage(language, highlight, { magic: false })),
      });
      const icon = new LabIcon({ name: 'avial:program', svgstr: PICTURE });
      for (const [name, displayName] of [['avial', 'Avial program'], ['mlir', 'MLIR']]) {
        app.docRegistry.addFileType({
          name,
          displayName,
          icon,
          extensions: [`.${name}`],
          mimeTypes: [`text/x-${name}`],
          contentType: 'file',
          fileFormat: 'text',
        });
      }
    },
  };
}

/** Two tasks and the one that waits for both. */
export const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16">
<g class="jp-icon3 jp-icon-selectable" fill="#616161"><circle cx="4" cy="3.5" r="2.2"/><rect x="9.8" y="1.4" width="4.4" height="4.2"/>
<path d="M8 15 5.2 10.2h5.6z"/></g>
<path class="jp-icon3" fill="none" stroke="#616161" d="M4.6 5.5 7 10M11.4 5.5 9 10"/></svg>`;
