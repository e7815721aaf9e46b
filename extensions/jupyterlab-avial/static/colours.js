// @ts-check
/** Colours in cells that begin with `%%avial`; other cells are left alone. */

import { avialLanguage } from './language.js';
import { isAvialCell } from './tokens.js';

/** @param {(name: string) => Promise<any>} lab */
export async function plugin(lab) {
  const { IEditorExtensionRegistry, EditorExtensionRegistry } = await lab('@jupyterlab/codemirror');
  const { EditorState, Compartment, Prec } = await lab('@codemirror/state');
  const language = await lab('@codemirror/language');
  const ours = avialLanguage(language, await lab('@lezer/highlight'), { magic: true });
  const on = new language.LanguageSupport(ours);

  /** The language of a cell follows its first line, as it is typed. */
  function following(/** @type {string} */ text) {
    const compartment = new Compartment();
    let shown = isAvialCell(text);
    const follow = EditorState.transactionExtender.of((transaction) => {
      if (!transaction.docChanged) return null;
      const wanted = isAvialCell(transaction.newDoc.sliceString(0, HEAD));
      if (wanted === shown) return null;
      shown = wanted;
      return { effects: compartment.reconfigure(wanted ? on : []) };
    });
    // Before the cell's own language: of two, CodeMirror takes the first.
    return [follow, Prec.highest(compartment.of(shown ? on : []))];
  }

  return {
    description: 'Colours in cells that begin with %%avial.',
    requires: [IEditorExtensionRegistry],
    activate: (_app, registry) => {
      registry.addExtension({
        name: 'avial-cells',
        factory: ({ model }) =>
          EditorExtensionRegistry.createImmutableExtension(following(model.sharedModel.getSource())),
      });
    },
  };
}

/** So many characters show whether a cell is ours, blank lines before the magic and all. */
const HEAD = 2000;
