// A page in one file: views take the place of their figures; keys; paper.
// Comes before the views' own scripts, each of which says "avial-view" with its `mount`.

const figures = document.querySelectorAll("details.figure");
const said = document.body.appendChild(document.createElement("p"));
said.className = "said";
said.setAttribute("role", "status");

// Said as JupyterLab says it, for the views.
const light = matchMedia("(prefers-color-scheme: light)");
const tellTheme = () => { document.body.dataset.jpThemeLight = light.matches; };
light.addEventListener("change", tellTheme);
tellTheme();

document.addEventListener("avial-view", ({ detail: { kind, mount } }) => {
  const host = document.querySelector(`[data-view="${kind}"]`);
  const data = JSON.parse(document.getElementById(`data-${kind}`).textContent);
  host.hidden = false;
  try {
    mount(host, data, { say: (text) => { said.textContent = text; } });
  } catch (error) {
    host.hidden = true; // the figure stays, and is as good as it was
    throw error;
  }
  host.parentElement.querySelector("details.figure").open = false;
});

// What is wider or higher than its box can be scrolled by keys: some browsers see to it themselves.
const reachScrolled = () => document.querySelectorAll(".picture, .table, pre").forEach((box) => {
  const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
  if (scrolls) box.tabIndex = 0; else box.removeAttribute("tabindex");
});
addEventListener("resize", reachScrolled);
document.addEventListener("toggle", reachScrolled, true);
reachScrolled();

// On paper the figures are shown, not the views.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...figures].filter((figure) => !figure.open);
  folded.forEach((figure) => { figure.open = true; });
});
addEventListener("afterprint", () => {
  folded.forEach((figure) => { figure.open = false; });
});

// j and k: the next section, the one before.
addEventListener("keydown", (event) => {
  const step = { j: 1, k: -1 }[event.key];
  const typing = event.target.closest?.("input, textarea, select, [contenteditable], .view");
  if (!step || typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const heads = [...document.querySelectorAll("section > h2")];
  const above = heads.filter((head) => head.getBoundingClientRect().top < 8).length;
  const here = heads.indexOf(document.activeElement);
  const next = here >= 0 ? here + step : step > 0 ? above : above - 1;
  heads[Math.max(0, Math.min(heads.length - 1, next))].focus();
});
