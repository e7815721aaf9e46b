// @ts-check
/**
 * Saved widgets: where the kernel that they lived in is gone, what was saved beside them is shown (a
 * stepper's folded stages, the sliders' picture) in place of a sentence about a model.
 */

const WIDGET = 'application/vnd.jupyter.widget-view+json';
const STILL = 'text/html';

/** What a renderer says that has no widget, or none yet. */
const NOTHING = /^(Error displaying widget|Loading widget)/;
const PATIENCE_MS = 500;

/** @param {(name: string) => Promise<any>} lab */
export async function plugin(lab) {
  const { INotebookTracker } = await lab('@jupyterlab/notebook');
  const { MimeModel } = await lab('@jupyterlab/rendermime');

  /** The renderer of widgets, which shows what was saved where, or as long as, it finds no widget. */
  function withStill(renderer, rendermime) {
    const live = renderer.renderModel.bind(renderer);
    const show = async (model) => {
      const html = model.data[STILL];
      if (html === undefined || renderer.isDisposed || !NOTHING.test(renderer.node.textContent)) return;
      const still = rendermime.createRenderer(STILL);
      await still.renderModel(new MimeModel({ data: { [STILL]: html }, trusted: model.trusted }));
      if (NOTHING.test(renderer.node.textContent)) renderer.node.replaceChildren(still.node);
      renderer.disposed.connect(() => still.dispose());
    };
    // It calls itself once more when all widgets of the notebook are there.
    renderer.renderModel = async (model) => {
      setTimeout(show, PATIENCE_MS, model);
      await live(model);
      if (/^Error/.test(renderer.node.textContent)) await show(model);
    };
    return renderer;
  }

  return {
    description: 'What was saved of a stepper or of sliders, where no kernel answers for them.',
    requires: [INotebookTracker],
    activate: (_app, tracker) => {
      const follow = ({ content: { rendermime } }) => {
        const create = rendermime.createRenderer.bind(rendermime);
        rendermime.createRenderer = (/** @type {string} */ type) =>
          type === WIDGET ? withStill(create(type), rendermime) : create(type);
      };
      tracker.forEach(follow);
      tracker.widgetAdded.connect((_, panel) => follow(panel));
    },
  };
}
