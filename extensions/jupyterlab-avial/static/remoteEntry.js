// @ts-check
/**
 * What JupyterLab loads first: a container of Module Federation, written by hand, so that nothing has
 * to be built. Lab calls `init` with the modules it shares, then `get`, and takes our plugins.
 * Everything else is in ES modules beside this file.
 */
(() => {
  const script = /** @type {HTMLScriptElement} */ (document.currentScript);
  let scope = {};
  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB['jupyterlab-avial'] = {
    init: (shared) => {
      scope = shared;
    },
    get: async () => {
      const { pluginsOf } = await import(new URL('extension.js', script.src).href);
      const plugins = await pluginsOf(scope);
      return () => ({ __esModule: true, default: plugins }); // without the mark Lab does not start
    },
  };
})();
