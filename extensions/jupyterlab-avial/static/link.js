// @ts-check
/**
 * One conversation with the kernel of a notebook, by the comm `avial` that avial_lab registers there
 * (avial_lab/notebook/panel.py says what is said). The kernel pushes; nothing is asked again and again.
 */

const TARGET = 'avial';

/** @type {WeakMap<object, Link>} */
const links = new WeakMap();

/**
 * The link of a notebook, made when it is first asked for.
 * @param {any} panel a NotebookPanel
 * @param {any} actions the class NotebookActions
 */
export function linkOf(panel, actions) {
  let link = links.get(panel);
  if (link === undefined) {
    link = new Link(panel, actions);
    links.set(panel, link);
  }
  return link;
}

/** Events: `state` (its `state` is new, null where the kernel has none), `diagnostics`, `program`, `failed`. */
export class Link extends EventTarget {
  constructor(panel, actions) {
    super();
    this.panel = panel;
    this.context = panel.sessionContext;
    this.state = null;
    this.comm = null;
    this.refused = false; // the kernel knew no such comm: nothing is asked until a cell changed that
    const executed = (_, { notebook, cell }) => {
      if (notebook !== panel.content || !mentionsUs(cell.model)) return;
      this.refused = false;
      this.connect();
    };
    actions.executed.connect(executed);
    panel.disposed.connect(() => actions.executed.disconnect(executed));
    this.context.kernelChanged.connect(() => this.lose());
    this.context.statusChanged.connect((_, status) => {
      if (/restarting|terminating|dead/.test(status)) this.lose();
      if (status === 'idle') this.connectIfOurs();
    });
    panel.context.ready.then(() => this.connectIfOurs());
  }

  get kernel() {
    return this.context.session?.kernel ?? null;
  }

  /** A kernel that has not heard of us is left alone. */
  async connectIfOurs() {
    const kernel = this.kernel;
    if (kernel === null || this.comm !== null || this.refused) return;
    const cells = this.panel.content.model?.cells ?? [];
    const spec = await kernel.spec;
    if (spec?.metadata?.avial || [...cells].some(mentionsUs)) this.connect();
  }

  connect() {
    if (this.kernel === null || this.comm !== null || !this.kernel.handleComms) return;
    const comm = this.kernel.createComm(TARGET);
    comm.onMsg = (message) => this.hear(message.content.data);
    comm.onClose = () => {
      if (this.comm !== comm) return;
      this.refused = this.state === null;
      this.lose();
    };
    this.comm = comm;
    comm.open({});
  }

  /** @param {any} message */
  hear(message) {
    if (message.kind === 'state') this.state = message;
    this.dispatchEvent(new CustomEvent(message.kind, { detail: message }));
  }

  /** The kernel is gone, or is another one. */
  lose() {
    this.comm = null;
    this.state = null;
    this.dispatchEvent(new CustomEvent('state'));
  }

  /** @param {object} question */
  ask(question) {
    this.comm?.send(question);
  }
}

function mentionsUs(cell) {
  return /\bavial/.test(cell.sharedModel.getSource());
}
