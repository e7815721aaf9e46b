// @ts-check
/** The views of a bundle, one below the other; each is a module of avial_lab/plot/views. */

/** @typedef {{version: number, title?: string, views: {kind: string, data: any}[]}} Bundle */

const VIEWS = new URL('views/', import.meta.url);

/**
 * @param {HTMLElement} host
 * @param {Bundle} bundle
 * @param {(html: string) => Promise<HTMLElement>} cleaned HTML -> what is safe of it
 * @returns {{ready: Promise<unknown>, dispose: () => void}}
 */
export function mountViews(host, bundle, cleaned) {
  /** @type {{dispose: () => void}[]} */
  const mounted = [];
  let disposed = false;
  host.replaceChildren();
  if (bundle?.version !== 1 || !Array.isArray(bundle.views)) {
    host.append(sentence(`This output is from another version of avial_lab; run the cell again.`));
    return { ready: Promise.resolve(), dispose: () => undefined };
  }
  const ready = Promise.all(
    bundle.views.map(async ({ kind, data }) => {
      const place = document.createElement('div');
      place.className = 'avial-view';
      host.append(place);
      try {
        if (kind === 'html') {
          place.append(await cleaned(String(data)));
          return;
        }
        const view = await viewModule(kind);
        if (!disposed) mounted.push(view.mount(place, data, {}));
      } catch (error) {
        console.warn(`avial_lab: the view '${kind}' cannot be shown:`, error);
        place.replaceChildren(sentence(`The view “${kind}” cannot be shown here (${error.message}).`));
      }
    }),
  );
  return {
    ready,
    dispose: () => {
      disposed = true;
      for (const view of mounted.splice(0)) view.dispose();
    },
  };
}

/** The module of a view, and its style in the page. A name out of a notebook is no path. */
async function viewModule(/** @type {string} */ kind) {
  if (!/^[a-z]+$/.test(kind)) throw new Error('no view has such a name');
  const view = await import(new URL(`${kind}.js`, VIEWS).href);
  await addStyle(new URL(`${kind}.css`, VIEWS).href);
  return view;
}

/** @type {Map<string, Promise<void>>} */
const styles = new Map();

/** Resolves when the style is in the page, or is not to be had. */
export function addStyle(/** @type {string} */ href) {
  const known = styles.get(href);
  if (known !== undefined) return known;
  const added = new Promise((resolve) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = href;
    link.onload = link.onerror = () => resolve();
    document.head.append(link);
  });
  styles.set(href, added);
  return added;
}

function sentence(/** @type {string} */ text) {
  const paragraph = document.createElement('p');
  paragraph.textContent = text;
  return paragraph;
}
