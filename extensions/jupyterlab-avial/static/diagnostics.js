// @ts-check
/**
 * Mistakes at their place: a wavy line under what is meant, a mark before its line, the message when
 * one points at either. Gone when the line is edited or the cell runs again.
 */

import { linkOf } from './link.js';
import { addStyle } from './views.js';

/** @typedef {{line: number, column: number, length: number, source: string, title: string, message: string, hint: string}} Mistake */

/** What is wrong now, by cell: an editor may be made only when its cell comes into sight. */
/** @type {Map<string, Mistake[]>} */
const mistakes = new Map();

/** @param {(name: string) => Promise<any>} lab */
export async function plugin(lab) {
  const { IEditorExtensionRegistry, EditorExtensionRegistry } = await lab('@jupyterlab/codemirror');
  const { INotebookTracker, NotebookActions } = await lab('@jupyterlab/notebook');
  const marks = await marking(lab);

  return {
    description: 'Mistakes in %%avial cells, marked at their place.',
    requires: [IEditorExtensionRegistry, INotebookTracker],
    activate: (_app, registry, tracker) => {
      addStyle(new URL('avial.css', import.meta.url).href);
      registry.addExtension({
        name: 'avial-mistakes',
        factory: ({ model }) => {
          const known = mistakes.get(model.sharedModel.getId?.()) ?? [];
          return EditorExtensionRegistry.createImmutableExtension(marks.extension(known));
        },
      });
      const follow = (panel) =>
        linkOf(panel, NotebookActions).addEventListener('diagnostics', (/** @type {any} */ event) => {
          const { cell, items } = event.detail;
          if (items.length > 0) mistakes.set(cell, items);
          else mistakes.delete(cell);
          const widget = panel.content.widgets.find(({ model }) => model.id === cell);
          const view = widget?.editor?.editor;
          if (view !== undefined) marks.show(view, items);
        });
      tracker.forEach(follow);
      tracker.widgetAdded.connect((_, panel) => follow(panel));
    },
  };
}

/** The part of CodeMirror. */
async function marking(lab) {
  const { Compartment, EditorState, StateEffect, StateField } = await lab('@codemirror/state');
  const view = await lab('@codemirror/view');
  const { Decoration, EditorView, GutterMarker } = view;

  class Mark extends GutterMarker {
    constructor(/** @type {Mistake} */ mistake) {
      super();
      this.mistake = mistake;
    }
    eq(other) {
      return other.mistake === this.mistake;
    }
    toDOM() {
      const sign = element('span', 'avial-mistake-sign', '✕');
      sign.setAttribute('role', 'img');
      sign.setAttribute('aria-label', `${this.mistake.title}: ${this.mistake.message}`);
      sign.title = told(this.mistake);
      return sign;
    }
  }

  /** @type {any} */
  const put = StateEffect.define();
  const field = StateField.define({
    create: () => [],
    update: (placed, transaction) => {
      const fresh = transaction.effects.find((effect) => effect.is(put));
      if (fresh !== undefined) return fresh.value;
      return transaction.docChanged ? kept(placed, transaction) : placed;
    },
    provide: (self) =>
      EditorView.decorations.from(self, (placed) =>
        Decoration.set(placed.map(({ from, to }) => Decoration.mark({ class: 'avial-mistake' }).range(from, to))),
      ),
  });
  const hover = view.hoverTooltip((editor, position) => {
    const found = editor.state.field(field).find(({ from, to }) => from <= position && position <= to);
    return found === undefined ? null : { pos: found.from, end: found.to, above: true, create: () => ({ dom: card(found.mistake) }) };
  });
  const gutter = view.gutter({
    class: 'avial-mistakes',
    markers: (editor) => {
      const lines = editor.state.field(field).map(({ from, mistake }) => new Mark(mistake).range(editor.state.doc.lineAt(from).from));
      return rangeSet(lines);
    },
  });
  const { RangeSet } = await lab('@codemirror/state');
  const rangeSet = (ranges) => RangeSet.of(ranges, true);
  const column = new Compartment();
  /** Without a mistake there is no gutter: a cell looks as it does without us. */
  const follow = EditorState.transactionExtender.of((transaction) => {
    const placed = transaction.startState.field(field, false) ?? [];
    const gone = transaction.docChanged && placed.length > 0 && kept(placed, transaction).length === 0;
    return gone ? { effects: column.reconfigure([]) } : null;
  });

  return {
    extension: (known) => [
      field.init((state) => placesOf(state.doc, known)),
      hover,
      follow,
      column.of(known.length > 0 ? gutter : []),
    ],
    show: (editor, items) => {
      const placed = placesOf(editor.state.doc, items);
      editor.dispatch({ effects: [put.of(placed), column.reconfigure(placed.length > 0 ? gutter : [])] });
    },
  };
}

/** Where in the document the mistakes are; not those whose line has been edited since. */
function placesOf(doc, /** @type {Mistake[]} */ items) {
  return items
    .filter(({ line, source }) => line <= doc.lines && (doc.line(line).text === source || source === ''))
    .map((mistake) => {
      const { from, to } = doc.line(mistake.line);
      const start = Math.min(from + mistake.column - 1, Math.max(from, to - 1));
      return { mistake, from: start, to: Math.min(start + Math.max(1, mistake.length), to) };
    })
    .filter(({ from, to }) => from < to);
}

/** The mistakes whose line a change leaves alone, moved with their text. */
function kept(placed, transaction) {
  const { startState, changes } = transaction;
  return placed
    .filter(({ from }) => {
      const line = startState.doc.lineAt(from);
      return !changes.touchesRange(line.from, line.to);
    })
    .map((one) => ({ ...one, from: changes.mapPos(one.from, 1), to: changes.mapPos(one.to, -1) }));
}

function card(/** @type {Mistake} */ mistake) {
  const box = element('div', 'avial-mistake-card', '');
  box.append(element('b', '', mistake.title), element('p', '', mistake.message));
  if (mistake.hint !== '') box.append(element('p', '', `Hint: ${mistake.hint}`));
  return box;
}

function told({ title, message, hint }) {
  return `${title}: ${message}${hint === '' ? '' : `\nHint: ${hint}`}`;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}
