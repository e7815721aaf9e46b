// A run while it goes on: how far it is, what each rank does, and the tasks coloured in the graph.
//
// What `live_data` of live.py made -> DOM; `update({state})` takes what `live_state` returns. `graph`
// is graph.js's mount, where the page has it: without it the ranks alone are shown.

import { element } from "./element.js";

let mounts = 0;

export function mount(host, data, { say, graph } = {}) {
  const view = new Live(host, data, { say, graph });
  view.update(data);
  return { update: (news) => view.update(news), dispose: () => view.dispose() };
}

class Live {
  constructor(host, data, { say, graph }) {
    this.id = `avial-live-${++mounts}`;
    this.host = host;
    this.say = say;
    this.rows = new Map();
    this.root = element("section", "avial-live", { "aria-labelledby": `${this.id}-title` });
    this.title = element("h4", "", { id: `${this.id}-title` });
    this.title.textContent = data.title;
    // The line of text is above, in an output of its own, for pages without widgets as well. The
    // bars are no live region: five times a second is too often for who listens.
    this.bar = progress(`${this.id}-title`);
    this.ranks = element("ul", "avial-ranks", { "aria-label": "ranks" });
    this.end = element("p", "avial-end", { role: "status" });
    this.root.append(this.title, this.bar.node, this.ranks, this.end);
    host.append(this.root);
    if (data.graph && graph) {
      const place = element("div", "avial-drawn");
      this.root.append(place);
      this.graph = graph(place, data.graph, { say });
    }
  }

  update({ state }) {
    if (!state) return;
    this.bar.set(state.share, state.failed);
    for (const rank of state.ranks) this.rank(rank, state.failed);
    this.graph?.update({ status: state.status });
    if (state.ended && this.end.textContent !== state.ended) {
      this.end.textContent = state.failed ? `✗ ${state.ended}` : `✓ ${state.ended}`;
      this.root.classList.toggle("avial-failed", state.failed);
      this.say?.(state.line);
    }
  }

  rank({ rank, words, share, finished }, failed) {
    const row = this.rows.get(rank) ?? this.newRow(rank);
    row.mark.textContent = finished ? "✓" : failed ? "✗" : "▶";
    row.bar.set(share, failed && !finished);
    row.words.textContent = words;
  }

  newRow(rank) {
    const node = element("li");
    const name = element("span", "avial-rank", { id: `${this.id}-rank-${rank}` });
    name.textContent = `rank ${rank} `;
    const mark = element("span", "avial-mark", { "aria-hidden": "true" });
    const bar = progress(name.id);
    const words = element("span", "avial-doing");
    node.append(name, mark, bar.node, words);
    this.ranks.append(node);
    const row = { mark, bar, words };
    this.rows.set(rank, row);
    return row;
  }

  dispose() {
    this.graph?.dispose();
    this.root.remove();
  }
}

function progress(labelledby) {
  const node = element("span", "avial-bar", { role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100", "aria-labelledby": labelledby });
  const filled = element("span", "avial-filled");
  node.append(filled);
  return {
    node,
    /** Of a share that nobody knows it shows that something goes on. */
    set(share, failed) {
      const known = typeof share === "number";
      const percent = known ? Math.round(share * 100) : 100;
      if (known) node.setAttribute("aria-valuenow", percent);
      else node.removeAttribute("aria-valuenow");
      node.classList.toggle("avial-unknown", !known && !failed);
      filled.style.width = `${known || !failed ? percent : 0}%`;
      node.classList.toggle("avial-failed", Boolean(failed));
    },
  };
}
