// @ts-check
/** The plugins: one for each feature, so that what one of them misses costs that one only. */

const FEATURES = ['colours', 'files', 'renderer', 'diagnostics', 'panel', 'gallery', 'saved'];

/**
 * @param {Record<string, Record<string, any>>} scope the modules JupyterLab shares: name -> version -> entry
 * @returns {Promise<object[]>}
 */
export async function pluginsOf(scope) {
  const lab = (/** @type {string} */ name) => sharedModule(scope, name);
  const plugins = await Promise.all(FEATURES.map((feature) => pluginOf(feature, lab)));
  return plugins.filter((plugin) => plugin !== null);
}

/**
 * @param {string} feature
 * @param {(name: string) => Promise<any>} lab
 */
async function pluginOf(feature, lab) {
  try {
    const { plugin } = await import(`./${feature}.js`);
    return { autoStart: true, id: `jupyterlab-avial:${feature}`, ...(await plugin(lab)) };
  } catch (error) {
    console.warn(`avial_lab: ${feature} is not available in this JupyterLab; the rest works:`, error);
    return null;
  }
}

/**
 * A module that JupyterLab itself uses; of several versions the one that is loaded, or the newest.
 * @param {Record<string, Record<string, any>>} scope
 * @param {string} name
 */
async function sharedModule(scope, name) {
  const versions = Object.entries(scope[name] ?? {});
  if (versions.length === 0) throw new Error(`JupyterLab shares no ${name}`);
  versions.sort(([a, x], [b, y]) => Number(!!x.loaded) - Number(!!y.loaded) || newer(a, b));
  const factory = await versions[versions.length - 1][1].get();
  return factory();
}

/** Compares `4.10.0` and `4.9.1` by their numbers. */
function newer(/** @type {string} */ a, /** @type {string} */ b) {
  return a.localeCompare(b, 'en', { numeric: true });
}
