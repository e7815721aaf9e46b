// @ts-check
/**
 * The gallery: lessons and kernels with a picture each, in the launcher, in the palette and in the
 * side panel. A click makes a notebook of one. What is in it is `gallery.json`, made by
 * avial_lab/notebook/gallery.py.
 */

import { PICTURE } from './files.js';
import { addStyle } from './views.js';

/** @typedef {{cell_type: string, source: string, metadata: object}} Cell */
/** @typedef {{name: string, words: string, picture: string, cells: Cell[]}} Item */
/** @typedef {{version: number, sections: {title: string, items: Item[]}[]}} Gallery */

const COMMAND = 'avial:gallery';
const OPEN = 'avial:open-from-gallery';

/** @param {(name: string) => Promise<any>} lab */
export async function plugin(lab) {
  const { ICommandPalette, MainAreaWidget } = await lab('@jupyterlab/apputils');
  const { IDefaultFileBrowser } = await lab('@jupyterlab/filebrowser');
  const { ILauncher } = await lab('@jupyterlab/launcher');
  const { LabIcon } = await lab('@jupyterlab/ui-components');
  const { Widget } = await lab('@lumino/widgets');

  return {
    description: 'Lessons and kernels, each a click away from a notebook that runs.',
    optional: [ICommandPalette, ILauncher, IDefaultFileBrowser],
    activate: (app, palette, launcher, browser) => {
      addStyle(new URL('avial.css', import.meta.url).href);
      const icon = new LabIcon({ name: 'avial:gallery', svgstr: PICTURE });
      let tab = null;

      app.commands.addCommand(COMMAND, {
        label: (args) => (args.isPalette ? 'Avial: Open the Gallery' : 'Avial gallery'),
        caption: 'Lessons and kernels, each as a notebook that runs',
        icon,
        execute: async () => {
          if (tab === null || tab.isDisposed) {
            tab = new MainAreaWidget({ content: new Widget() });
            tab.id = 'avial-gallery';
            tab.title.label = 'Avial gallery';
            tab.title.closable = true;
            tab.title.icon = icon;
            tab.content.addClass('avial-gallery');
            app.shell.add(tab, 'main');
            await showGallery(tab.content.node, (item) => app.commands.execute(OPEN, { name: item.name }));
          }
          app.shell.activateById(tab.id);
        },
      });
      app.commands.addCommand(OPEN, {
        label: 'Avial: Open One of the Gallery',
        execute: async (/** @type {{name?: string}} */ { name }) => {
          const items = (await gallery()).sections.flatMap((section) => section.items);
          const item = items.find((each) => each.name === name);
          if (item === undefined) throw new Error(`the gallery has no ${name}`);
          const path = await notebookOf(app.serviceManager.contents, browser?.model.path ?? '', item);
          return app.commands.execute('docmanager:open', { path, factory: 'Notebook', kernel: { name: KERNEL } });
        },
      });
      palette?.addItem({ command: COMMAND, category: 'Avial', args: { isPalette: true } });
      launcher?.add({ command: COMMAND, category: 'Notebook', rank: 50 });
    },
  };
}

const KERNEL = 'python3';

/** @type {Promise<Gallery> | null} */
let loaded = null;

/** @returns {Promise<Gallery>} */
function gallery() {
  loaded ??= fetch(new URL('gallery.json', import.meta.url).href).then((answer) => {
    if (!answer.ok) throw new Error(`the gallery is not there (${answer.status})`);
    return answer.json();
  });
  return loaded;
}

/** A new file beside what the file browser shows; its path. */
async function notebookOf(contents, folder, /** @type {Item} */ item) {
  const made = await contents.newUntitled({ type: 'notebook', path: folder });
  const spec = { name: KERNEL, display_name: 'Python 3', language: 'python' };
  const cells = item.cells.map(({ cell_type, source, metadata }, k) => ({
    id: `cell-${k}`,
    cell_type,
    metadata,
    source,
    ...(cell_type === 'code' ? { execution_count: null, outputs: [] } : {}),
  }));
  await contents.save(made.path, {
    type: 'notebook',
    format: 'json',
    content: { cells, metadata: { kernelspec: spec }, nbformat: 4, nbformat_minor: 5 },
  });
  const name = `${item.name.replace(/[^\w-]+/g, '-').toLowerCase()}.ipynb`;
  const path = folder === '' ? name : `${folder}/${name}`;
  // Where there is one of that name already, the new one keeps its own.
  return contents.rename(made.path, path).then(
    () => path,
    () => made.path,
  );
}

/** The sections as cards; `open` is called with the one that is pressed. */
export async function showGallery(/** @type {HTMLElement} */ host, /** @type {(item: Item) => Promise<any>} */ open) {
  const told = make('p', { role: 'status' });
  host.replaceChildren(told);
  let sections;
  try {
    ({ sections } = await gallery());
  } catch (error) {
    told.textContent = String(error.message ?? error);
    return;
  }
  for (const { title, items } of sections) {
    const list = make('ul', { class: 'avial-cards' });
    for (const item of items) {
      const picture = make('img', { alt: '', src: `data:image/svg+xml;utf8,${encodeURIComponent(item.picture)}` });
      const button = make('button', { type: 'button', class: 'avial-card', title: `Open ${item.name} as a new notebook` });
      button.append(make('b', {}, item.name), make('span', { class: 'avial-card-picture' }, picture), make('span', {}, item.words));
      button.onclick = async () => {
        told.textContent = '';
        try {
          await open(item);
        } catch (error) {
          told.textContent = `${item.name} could not be opened: ${error.message ?? error}`;
        }
      };
      list.append(make('li', {}, button));
    }
    host.append(make('h3', {}, title), list);
  }
}

/** @returns {any} */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
