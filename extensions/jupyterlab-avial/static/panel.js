// @ts-check
/**
 * The side panel: the cluster of the current notebook, its devices, its programs. It shows what the
 * kernel pushes and asks the kernel to act; it keeps nothing of its own.
 */

import { PICTURE } from './files.js';
import { showGallery } from './gallery.js';
import { linkOf } from './link.js';
import { addStyle } from './views.js';

/** @param {(name: string) => Promise<any>} lab */
export async function plugin(lab) {
  const { ILayoutRestorer } = await lab('@jupyterlab/application');
  const { ICommandPalette, MainAreaWidget } = await lab('@jupyterlab/apputils');
  const { INotebookTracker, NotebookActions } = await lab('@jupyterlab/notebook');
  const { IRenderMimeRegistry, MimeModel } = await lab('@jupyterlab/rendermime');
  const { LabIcon } = await lab('@jupyterlab/ui-components');
  const { Widget } = await lab('@lumino/widgets');

  return {
    description: 'Clusters, devices and programs of the current notebook.',
    requires: [INotebookTracker, IRenderMimeRegistry],
    optional: [ICommandPalette, ILayoutRestorer],
    activate: (app, tracker, rendermime, palette, restorer) => {
      addStyle(new URL('avial.css', import.meta.url).href);
      const widget = new Widget();
      widget.id = 'avial-panel';
      widget.title.caption = 'Avial: cluster and programs';
      widget.title.icon = new LabIcon({ name: 'avial:panel', svgstr: PICTURE });
      widget.node.setAttribute('role', 'region');
      widget.node.setAttribute('aria-label', 'Avial');
      const view = new PanelView(widget.node);
      widget.node.append(galleryFold((item) => app.commands.execute('avial:open-from-gallery', { name: item.name })));

      const follow = (panel) => {
        const link = linkOf(panel, NotebookActions);
        for (const event of ['state', 'failed']) {
          link.addEventListener(event, (/** @type {any} */ { detail }) => {
            if (tracker.currentWidget === panel) view.show(link, detail?.message);
          });
        }
        link.addEventListener('program', (/** @type {any} */ { detail }) => open(panel, detail));
        link.context.statusChanged.connect(() => view.tellBusy(link));
      };
      const current = () => view.show(tracker.currentWidget && linkOf(tracker.currentWidget, NotebookActions));
      tracker.forEach(follow);
      tracker.widgetAdded.connect((_, panel) => follow(panel));
      tracker.currentChanged.connect(current);
      current();

      /** The program's pictures in a tab beside its notebook; a second time in the same tab. */
      const tabs = new Map();
      async function open(panel, { name, data }) {
        const key = `avial-program-${panel.id}-${name}`;
        let tab = tabs.get(key);
        if (tab === undefined || tab.isDisposed) {
          tab = new MainAreaWidget({ content: new Widget() });
          tab.id = key;
          tab.title.label = name;
          tab.title.closable = true;
          tab.title.icon = widget.title.icon;
          tab.content.addClass('avial-program');
          tabs.set(key, tab);
          app.shell.add(tab, 'main', { ref: panel.id, mode: 'split-right' });
        }
        const renderer = rendermime.createRenderer(rendermime.preferredMimeType(data, 'ensure'));
        await renderer.renderModel(new MimeModel({ data, trusted: false }));
        tab.content.node.replaceChildren(renderer.node);
        app.shell.activateById(tab.id);
      }

      app.shell.add(widget, 'left', { rank: 650, type: 'Avial' });
      restorer?.add(widget, widget.id);
      app.commands.addCommand('avial:panel', {
        label: 'Avial: Show the Cluster and the Programs',
        execute: () => app.shell.activateById(widget.id),
      });
      palette?.addItem({ command: 'avial:panel', category: 'Avial' });
    },
  };
}

const LOAD = 'Run %load_ext avial_lab in this notebook, and its cluster and programs are shown here.';
/** A state is shown by its sign as well as by its word. */
const SIGNS = { ready: '●', running: '▶', restarting: '↻', broken: '✕', stopped: '■', 'one process': '○' };

class PanelView {
  constructor(/** @type {HTMLElement} */ host) {
    host.classList.add('avial-panel');
    this.heading = element('h2', {}, 'Avial');
    this.note = element('p', { role: 'status' });
    this.body = element('div');
    host.append(this.heading, this.note, this.body);
    this.sizes = { cpu: 2, gpu: 1 };
    this.link = null;
  }

  /**
   * @param {import('./link.js').Link | null} link of the notebook that is looked at
   * @param {string} [failed] what could not be done
   */
  show(link, failed) {
    this.link = link;
    const state = link?.state ?? null;
    this.heading.textContent = link === null ? 'Avial' : link.context.name || 'Avial';
    const note = link === null ? 'Open a notebook to see its cluster and its programs.' : LOAD;
    this.say(failed ?? (state === null ? note : ''));
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.key;
    this.body.replaceChildren(...(state === null ? [] : [this.cluster(state), this.programs(state)]));
    if (focused !== undefined) this.find(focused)?.focus();
  }

  /** @returns {HTMLElement | null} */
  find(key) {
    return this.body.querySelector(`[data-key="${CSS.escape(key)}"]`);
  }

  say(text) {
    this.note.textContent = text;
    this.note.hidden = text === '';
  }

  /** A kernel at work answers when it is done; better said than wondered at. */
  tellBusy(link) {
    if (link !== this.link || link.state === null || !this.waits) return;
    const busy = link.context.session?.kernel?.status === 'busy';
    this.say(busy ? 'The kernel is at work; it answers when it is done.' : '');
    this.waits = busy;
  }

  ask(question) {
    this.waits = true;
    this.link?.ask(question);
    this.tellBusy(this.link);
  }

  cluster({ cluster, starting, failed }) {
    const section = element('section', { 'aria-label': 'Cluster' }, element('h3', {}, 'Cluster'));
    if (starting !== null) section.append(stateLine('restarting', `starting: ${starting}`));
    else if (cluster === null) section.append(stateLine('stopped', 'none is running'));
    else section.append(stateLine(cluster.state, `${cluster.state}${cluster.id && `, ${cluster.id}`}`));
    if (failed !== null) section.append(element('p', { class: 'avial-failed' }, failed));
    if (starting !== null) return section;
    section.append(cluster === null ? this.starter() : this.running(cluster));
    return section;
  }

  running(cluster) {
    const stop = element('button', { class: 'jp-Button avial-button', 'data-key': 'stop' }, 'Stop the cluster');
    stop.onclick = () => this.ask({ do: 'stop' });
    const table = element('table', {}, element('caption', {}, 'Devices'));
    table.append(row('th', ['device', 'arch', 'rank', 'machine']));
    for (const { name, arch, rank, node, emulated } of cluster.devices) {
      table.append(row('td', [name, emulated ? `${arch}, emulated` : arch, String(rank), node]));
    }
    const told = element('details', {}, element('summary', { 'data-key': 'told' }, 'Engines'), element('pre', {}, cluster.told));
    return element('div', {}, table, told, stop);
  }

  starter() {
    const form = element('form', { class: 'avial-starter' });
    for (const [kind, label] of [['cpu', 'CPU ranks'], ['gpu', 'GPU ranks']]) {
      const input = /** @type {HTMLInputElement} */ (
        element('input', { type: 'number', min: '0', max: '64', required: '', 'data-key': kind, value: String(this.sizes[kind]) })
      );
      input.oninput = () => (this.sizes[kind] = input.valueAsNumber);
      form.append(element('label', {}, `${label} `, input));
    }
    form.append(element('button', { class: 'jp-Button avial-button', 'data-key': 'start' }, 'Start a cluster'));
    form.onsubmit = (event) => {
      event.preventDefault();
      this.ask({ do: 'start', ...this.sizes });
    };
    return form;
  }

  programs({ programs }) {
    const section = element('section', { 'aria-label': 'Programs' }, element('h3', {}, 'Programs'));
    if (programs.length === 0) {
      section.append(element('p', {}, 'None yet: write a program in a cell that begins with %%avial.'));
      return section;
    }
    const list = element('ul');
    for (const { name, cell, tasks, levels, ranks, run } of [...programs].reverse()) {
      const button = element('button', { class: 'avial-program-button', 'data-key': `program ${name}`, title: 'Show its pictures' }, element('b', {}, name), ` ${cell}`);
      button.onclick = () => this.ask({ do: 'show', name });
      const facts = `${count(tasks, 'task')}, ${count(levels, 'level')}, ${count(ranks, 'rank')}; ${run}`;
      list.append(element('li', {}, button, element('span', {}, facts)));
    }
    section.append(list);
    return section;
  }
}

/** Filled when it is first unfolded. */
function galleryFold(open) {
  const body = element('div', { class: 'avial-gallery' });
  const fold = element('details', {}, element('summary', {}, 'Gallery: lessons and kernels'), body);
  fold.addEventListener('toggle', () => fold.open && body.childElementCount === 0 && showGallery(body, open));
  return fold;
}

function stateLine(state, words) {
  const sign = element('span', { class: 'avial-sign', 'aria-hidden': 'true' }, SIGNS[state] ?? '?');
  return element('p', { class: 'avial-state', 'data-state': state }, sign, ` ${words}`);
}

function row(tag, texts) {
  const scope = tag === 'th' ? { scope: 'col' } : {};
  return element('tr', {}, ...texts.map((text) => element(tag, scope, text)));
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/**
 * @param {string} tag
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children text is put in as text
 * @returns {any}
 */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
