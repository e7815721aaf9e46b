// What views make their pages of; `source` (plot/views/__init__.py) puts it in place of its import.

export function element(name, className = "", attributes = {}, text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}
