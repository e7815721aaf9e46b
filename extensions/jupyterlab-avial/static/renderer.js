// @ts-check
/**
 * Outputs of type application/vnd.avial+json: the interactive pictures of avial_lab, without a kernel
 * and in notebooks that are not trusted. Nothing in them is taken for HTML but what Lab's sanitiser
 * leaves of it.
 */

import { mountViews } from './views.js';

export const TYPE = 'application/vnd.avial+json';

/** @param {(name: string) => Promise<any>} lab */
export async function plugin(lab) {
  const { IRenderMimeRegistry, MimeModel } = await lab('@jupyterlab/rendermime');
  const { Widget } = await lab('@lumino/widgets');

  class Pictures extends Widget {
    constructor(rendermime) {
      super();
      this.addClass('avial-output');
      this.rendermime = rendermime;
      this.mounted = null;
    }

    async renderModel(model) {
      this.mounted?.dispose();
      this.mounted = mountViews(this.node, model.data[TYPE], (html) => this.cleaned(html));
      await this.mounted.ready;
    }

    /** @returns {Promise<HTMLElement>} what Lab's own renderer shows of HTML it does not trust */
    async cleaned(html) {
      const renderer = this.rendermime.createRenderer('text/html');
      await renderer.renderModel(new MimeModel({ data: { 'text/html': html }, trusted: false }));
      return renderer.node;
    }

    dispose() {
      this.mounted?.dispose();
      super.dispose();
    }
  }

  return {
    description: 'The pictures of avial_lab in the output of a cell.',
    requires: [IRenderMimeRegistry],
    activate: (_app, rendermime) => {
      rendermime.addFactory(
        {
          safe: true,
          mimeTypes: [TYPE],
          createRenderer: () => new Pictures(rendermime),
        },
        RANK,
      );
    },
  };
}

/** Before text/html, which is 50. */
const RANK = 30;
