// The task graph, to explore: tasks by level or in lanes, why each waits for which, the critical
// path, and how far a run is.
//
// What `graph_data` of graph.py made -> DOM. `update({status: {task: state}})` colours tasks while
// they run: state is "waiting", "running", "done" or "failed", or {state, note} with a few words
// beside the name (`iteration 3`). Only what changed is touched.

const MOST_BOXES = 150;
const MOST_GROUPED = 1500;
const MOST_MEMBERS = 100; // of an unfolded group
const MOST_BARS = 40;
const SAVED = [
  ...["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "visibility", "display"],
  ...["font-family", "font-size", "font-weight", "text-anchor", "paint-order", "marker-end"],
]; // styles that a saved picture brings with it
const FEW = 4; // tasks from which on there is a toolbar
const MOST_LABELS = 40;
const MOST_LISTED = 14;
const MOST_ROWS = 200;
const GLYPHS = { waiting: "", running: "▶", done: "✓", failed: "✗" };
const STATES = ["failed", "running", "done", "waiting"]; // the worst first
const WHY = {
  RAW: "reads what it wrote",
  WAR: "overwrites what it read",
  WAW: "overwrites what it wrote",
  after: "ordered by hand",
};
const FONT = "Helvetica,Arial,sans-serif";
let mounts = 0;

export function mount(host, data, { say } = {}) {
  const view = new View(host, say);
  view.open(data);
  return { update: (news) => view.update(news), dispose: () => view.dispose() };
}

// -- what is drawn: the columns, ready to ask -----------------------------------------------------

async function unpacked(data) {
  if (data.columns) return data.columns;
  const bytes = Uint8Array.from(atob(data.packed), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

class Graph {
  constructor(data, { strings, tasks, edges }) {
    this.data = data;
    this.strings = strings;
    this.tasks = tasks;
    this.edges = edges;
    this.count = tasks.shared.length;
    this.names = [];
    let name = "";
    tasks.name.forEach((rest, k) => this.names.push((name = name.slice(0, tasks.shared[k]) + rest)));
    this.index = new Map(this.names.map((each, k) => [each, k]));
    const total = edges.after.length;
    this.before = new Int32Array(total);
    this.after = new Int32Array(total);
    for (let e = 0, head = 0; e < total; e++) {
      this.after[e] = head += edges.after[e];
      this.before[e] = head - edges.before[e];
    }
    this.into = incidence(this.count, this.after);
    this.from = incidence(this.count, this.before);
    this.path = new Set(data.path.tasks);
    const groups = data.groups.map((group) => group.name);
    this.parents = data.groups.map((group) => groups.indexOf(group.around.at(-1)));
    this.levels = tasks.level.reduce((most, level) => Math.max(most, level + 1), 0);
  }

  word(table, column, k) {
    const values = this[table][column];
    return values ? this.strings[values[k]] : "";
  }

  // The numbers of the devices a task is on.
  lanes(task) {
    const lanes = this.tasks.lanes[task];
    return typeof lanes === "number" ? (lanes < 0 ? [] : [lanes]) : lanes;
  }

  // Between which ranks an edge goes, where both its tasks are on one rank each.
  crosses(edge) {
    if (this.data.groups.length) return "";
    const [a, b] = [this.before[edge], this.after[edge]].map((task) => this.lanes(task));
    if (a.length !== 1 || b.length !== 1) return "";
    const [from, to] = [a[0], b[0]].map((lane) => this.data.devices[lane].rank);
    return from === to ? "same rank" : `rank ${from} → ${to}`;
  }

  // Whether an edge is a step of the critical path.
  critical(edge) {
    return this.path.has(this.before[edge]) && this.path.has(this.after[edge]) && this.steps.has(edge);
  }

  get steps() {
    if (!this._steps) {
      const next = new Map();
      this.data.path.tasks.forEach((task, k, all) => next.set(task, all[k + 1]));
      this._steps = new Set();
      for (const task of this.path)
        for (const e of this.from(task)) if (next.get(task) === this.after[e]) this._steps.add(e);
    }
    return this._steps;
  }

  // The tasks at most `up` steps before and `down` steps after one, no more than `most`.
  around(task, up, down, most) {
    const found = new Set([task]);
    const walk = (edges, end, hops) => {
      let rim = [task];
      for (let hop = 0; hop < hops && rim.length; hop++) {
        const next = [];
        for (const t of rim)
          for (const e of edges(t))
            if (!this.edges.carried[e] && !found.has(end[e]) && found.size < most) {
              found.add(end[e]);
              next.push(end[e]);
            }
        rim = next;
      }
    };
    walk(this.into, this.before, up);
    walk(this.from, this.after, down);
    return [...found].sort((a, b) => a - b);
  }

  cost(value) {
    return this.data.path.unit === "s" ? seconds(value) : bytes(value);
  }

  edgeWords(e) {
    const buffer = this.word("edges", "buffer", e);
    const hazard = this.word("edges", "hazard", e);
    return buffer ? `${hazard} ${buffer} ${bytes(this.edges.bytes[e])}` : hazard;
  }
}

// For each task the edges that end (or begin) there.
function incidence(count, ends) {
  const start = new Int32Array(count + 1);
  for (const task of ends) start[task + 1]++;
  for (let k = 0; k < count; k++) start[k + 1] += start[k];
  const next = start.slice();
  const listed = new Int32Array(ends.length);
  ends.forEach((task, edge) => (listed[next[task]++] = edge));
  return (task) => listed.subarray(start[task], start[task + 1]);
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let k = 0;
  for (; value >= 1024 && k < 4; k++) value /= 1024;
  return `${value < 1000 ? Number(value.toPrecision(3)) : Math.round(value)} ${units[k]}`;
}

function seconds(value) {
  if (!value) return "0 s";
  for (const [scale, unit] of [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
  ])
    if (Math.abs(value) >= scale) return `${Number((value / scale).toPrecision(3))} ${unit}`;
  return `${Number((value / 1e-9).toPrecision(3))} ns`;
}

const many = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

// -- layout ---------------------------------------------------------------------------------------

// Boxes {w, h, row} in rows, lines {tail, head, w, h}: order within a row by the mean of the
// neighbours, and a way kept free for lines over several rows (Sugiyama, Tagawa, Toda 1981).
function layOut(boxes, lines) {
  const gap = 26;
  const widths = boxes.map((box) => box.w);
  const row = boxes.map((box) => box.row);
  const passed = lines.reduce((sum, l) => sum + Math.max(0, row[l.head] - row[l.tail] - 1), 0);
  const ways = lines.map(({ tail, head, w }) => {
    const way = [tail];
    for (let r = row[tail] + 1; r < row[head] && passed < 5000; r++) {
      way.push(widths.length);
      widths.push(Math.max(8, w || 0));
      row.push(r);
    }
    return [...way, head];
  });
  const near = widths.map(() => []);
  for (const way of ways)
    for (let k = 1; k < way.length; k++) {
      near[way[k - 1]].push(way[k]);
      near[way[k]].push(way[k - 1]);
    }
  const rows = [];
  row.forEach((r, k) => (rows[r] ??= []).push(k));
  const x = widths.map(() => 0);
  const spread = (members, wish) => {
    const right = wish.slice();
    const left = wish.slice();
    const apart = (n) => (widths[members[n - 1]] + widths[members[n]]) / 2 + gap;
    for (let n = 1; n < members.length; n++) right[n] = Math.max(right[n], right[n - 1] + apart(n));
    for (let n = members.length - 1; n > 0; n--) left[n - 1] = Math.min(left[n - 1], left[n] - apart(n));
    members.forEach((k, n) => (x[k] = (left[n] + right[n]) / 2));
  };
  for (const members of rows) {
    let at = 0;
    spread(
      members,
      members.map((k) => (at += widths[k] + gap) - widths[k] / 2),
    );
  }
  for (let sweep = 0; sweep < 8; sweep++)
    for (const members of sweep % 2 ? rows.slice().reverse() : rows) {
      const wish = new Map(
        members.map((k) => [k, near[k].length ? near[k].reduce((s, n) => s + x[n], 0) / near[k].length : x[k]]),
      );
      members.sort((a, b) => wish.get(a) - wish.get(b));
      spread(
        members,
        members.map((k) => wish.get(k)),
      );
    }
  const least = Math.min(...x.map((value, k) => value - widths[k] / 2));
  const labels = lines.reduce((most, line) => Math.max(most, line.h || 0), 0);
  let height = 0;
  const middle = rows.map((members) => {
    const tall = Math.max(...members.map((k) => boxes[k]?.h ?? 0));
    const at = height + tall / 2;
    height += tall + 44 + labels;
    return at;
  });
  boxes.forEach((box, k) => Object.assign(box, { x: x[k] - least - box.w / 2, y: middle[box.row] - box.h / 2 }));
  const port = (box, end, way) => {
    const there = ways.filter((other) => other.at(end) === box);
    there.sort((a, b) => x[a.at(end ? -2 : 1)] - x[b.at(end ? -2 : 1)]);
    const n = there.indexOf(way);
    return x[box] - least + boxes[box].w * 0.7 * ((n + 0.5) / there.length - 0.5);
  };
  const placed = [];
  lines.forEach((line, k) => {
    const way = ways[k];
    const [tail, head] = [boxes[line.tail], boxes[line.head]];
    const stops = [[port(line.tail, 0, way), tail.y + tail.h]];
    for (const via of way.slice(1, -1)) stops.push([x[via] - least, middle[row[via]]]);
    stops.push([port(line.head, -1, way), head.y]);
    line.stops = stops;
  });
  const points = lines.map(({ stops: [from, to] }) => Array.from({ length: 41 }, (_, k) => pointOf(from, to, k / 40)));
  lines.forEach((line, n) => {
    if (!line.w) return;
    const { stops } = line;
    // Beside the arrow, where no other one goes through; its middle is where the label's is.
    const [from, to] = stops;
    const side = to[0] < from[0] ? -1 : 1;
    line.at = [
      [0.5, side],
      [0.5, -side],
      [0.36, side],
      [0.64, side],
      [0.36, -side],
      [0.64, -side],
    ]
      .map(([t, way]) => beside(from, to, t, way, line))
      .sort((one, other) => crossed(one, line, points, n) - crossed(other, line, points, n))
      .find(([a, b]) =>
        placed.every(([c, d, o]) => Math.abs(a - c) >= (line.w + o.w) / 2 || Math.abs(b - d) >= (line.h + o.h) / 2),
      );
    if (line.at) placed.push([...line.at, line]);
  });
  const labelled = lines.filter((line) => line.at);
  const left = Math.min(0, ...labelled.map((line) => line.at[0] - line.w / 2));
  const right = Math.max(...x.map((value, k) => value + widths[k] / 2 - least), ...labelled.map((line) => line.at[0] + line.w / 2));
  // What stands out on the left moves everything to the right.
  for (const box of boxes) box.x -= left;
  for (const line of lines) for (const stop of [...line.stops, ...(line.at ? [line.at] : [])]) stop[0] -= left;
  return { w: right - left, h: height - 44 - labels };
}

/** A point of the curve between two stops, at its share `t`. */
function pointOf(from, to, t) {
  return [
    from[0] + (to[0] - from[0]) * (3 * t * t - 2 * t ** 3),
    from[1] + (to[1] - from[1]) * (1.5 * t - 1.5 * t * t + t ** 3),
  ];
}

/** How many other arrows go through a label whose middle is there. */
function crossed([x, y], { w, h }, points, own) {
  const through = ([a, b]) => Math.abs(a - x) < w / 2 && Math.abs(b - y) < h / 2;
  return points.filter((each, n) => n !== own && each.some(through)).length;
}

/** The middle of a label that touches the curve between two stops nowhere, at its share `t`. */
function beside(from, to, t, way, { w, h }) {
  let [reach, middle] = pointOf(from, to, t);
  // How far the curve reaches to that side as high as the label is.
  for (let s = 0; s <= 1; s += 0.02) {
    const [x, y] = pointOf(from, to, s);
    if (Math.abs(y - middle) <= h / 2 + 2) reach = way * Math.max(way * reach, way * x);
  }
  return [reach + way * (w / 2 + 2), middle];
}

// A chain of curves that are upright at every stop.
function curve(stops) {
  let d = `M${stops[0].map(round)}`;
  for (let k = 1; k < stops.length; k++) {
    const [[ax, ay], [bx, by]] = [stops[k - 1], stops[k]];
    const bend = (by - ay) / 2;
    d += `C${[ax, ay + bend, bx, by - bend, bx, by].map(round)}`;
  }
  return d;
}

const round = (value) => Math.round(value * 10) / 10;

// -- the view -------------------------------------------------------------------------------------

class View {
  constructor(host, say) {
    this.host = host;
    this.say = say ?? (() => {});
    this.id = `avial-graph-${++mounts}`;
    this.pen = document.createElement("canvas").getContext("2d");
    this.state = {
      mode: "graph",
      folded: new Set(),
      unfolded: new Set(),
      chosen: null,
      hops: 1,
      critical: false,
    };
    this.status = [];
    this.early = []; // news that came before the columns were unpacked
    this.hits = [];
    this.zoom = 1;
    this.selected = null;
  }

  async open(data) {
    this.data = data;
    this.frame();
    try {
      const columns = await unpacked(data);
      if (this.gone) return;
      this.graph = new Graph(data, columns);
    } catch (error) {
      this.told.textContent = `The graph cannot be drawn here (${error.message}); see the figures and tables.`;
      return;
    }
    if (!this.graph.count) {
      this.graph = null;
      this.told.textContent = "There are no tasks.";
      return;
    }
    this.status = new Array(this.graph.count).fill("waiting");
    this.totals = { waiting: this.graph.count, running: 0, done: 0, failed: 0 };
    this.notes = new Map();
    if (data.groups.length) this.state.nested = true;
    this.draw({ fit: true });
    for (const news of this.early.splice(0)) this.update(news);
  }

  dispose() {
    this.gone = true;
    this.host.replaceChildren();
  }

  // -- the parts around the picture

  frame() {
    const { data } = this;
    const button = (label, title, act, more = {}) => {
      const made = html("button", { type: "button", title, ...more }, label);
      made.addEventListener("click", () => this.graph && act(made));
      return made;
    };
    this.search = html("input", {
      type: "search",
      placeholder: "task or buffer",
      "aria-label": "search tasks and buffers",
    });
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextHit(event.shiftKey ? -1 : 1);
    });
    this.found = html("output", { class: "avial-quiet" });
    this.hops = html("select", { "aria-label": "steps around a task" });
    for (const [hops, label] of [
      [1, "1 step"],
      [2, "2 steps"],
      [3, "3 steps"],
      [1e9, "all"],
    ])
      this.hops.append(html("option", { value: hops }, label));
    this.hops.addEventListener("change", () => {
      this.state.hops = Number(this.hops.value);
      if (this.state.around) this.focus(this.state.around);
    });
    const pressed = { "aria-pressed": "false" };
    this.lanes = button(
      "Lanes",
      "one row per device, box length: cost",
      () => this.show(this.state.mode === "lanes" ? "graph" : "lanes"),
      pressed,
    );
    if (!data.devices.length)
      Object.assign(this.lanes, {
        disabled: true,
        title: "lanes need a placed program",
      });
    this.bold = button("Critical path", data.path.words, () => this.emphasise(), pressed);
    this.whole = button("Whole graph", "show the whole graph (Escape)", () => this.showAll(), {
      disabled: "",
    });
    this.tools = html(
      "div",
      { class: "avial-tools", role: "toolbar", "aria-label": "task graph" },
      html("span", { class: "avial-search" }, this.search, this.found),
      this.lanes,
      this.bold,
      html(
        "span",
        {},
        button("Neighbours", "only the selected task and its neighbours (f)", () => this.focus()),
        this.hops,
      ),
      this.whole,
      html(
        "span",
        {},
        button("Fold", "draw groups as one box (g)", () => this.fold(true)),
        button("Unfold", "draw every task, up to a legible number (u)", () => this.fold(false)),
      ),
      html(
        "span",
        {},
        button("−", "smaller (-)", () => this.scale(1 / 1.25), { "aria-label": "zoom out" }),
        button("+", "larger (+)", () => this.scale(1.25), { "aria-label": "zoom in" }),
        button("Fit", "fit to window (0)", () => this.fit()),
      ),
    );
    this.paper = svg("svg", {
      class: "avial-picture",
      role: "group",
      "aria-label": `${data.title}: ${data.alt}`,
    });
    this.area = html(
      "div",
      {
        class: "avial-area",
        tabindex: "0",
        role: "region",
        "aria-label": "task graph: arrow keys move between tasks, Enter selects",
      },
      this.paper,
    );
    this.panel = html("aside", {
      class: "avial-panel",
      "aria-label": "details",
      tabindex: "0",
    });
    this.progress = html("p", { class: "avial-progress" });
    this.told = html("p", { class: "avial-told" });
    this.legend = html("p", { class: "avial-legend" });
    const rows = html("div", {
      class: "avial-rows",
      tabindex: "0",
      role: "region",
      "aria-label": "tables",
    });
    this.tables = html("details", {}, html("summary", {}, "as a table"), rows);
    this.tables.addEventListener("toggle", () =>
      rows.replaceChildren(...(this.tables.open && this.graph ? this.rows() : [])),
    );
    // Of three tasks everything is in sight: nothing is to be searched, folded or enlarged.
    this.small = data.totals.tasks > 0 && data.totals.tasks < FEW;
    this.tools.hidden = this.small;
    const heading = html("p", { class: "avial-heading" }, html("strong", {}, data.title), ` ${data.summary}`);
    if (data.machine) heading.append(html("span", { class: "avial-quiet" }, ` · ${data.machine}`));
    if (this.small) heading.append(" ", this.lanes);
    this.root = html(
      "div",
      { class: "avial-graph" },
      heading,
      this.tools,
      this.progress,
      html("div", { class: "avial-body" }, this.area, this.panel),
      this.told,
      this.legend,
      html(
        "p",
        { class: "avial-save" },
        button("Save SVG", "save the picture as a file", () => this.save("svg")),
        " ",
        button("Save PNG", "save the picture as a file", () => this.save("png")),
      ),
      this.tables,
    );
    this.host.replaceChildren(this.root);
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.paper.addEventListener("click", (event) => this.click(event));
    for (const [over, out] of [
      ["pointerover", "pointerout"],
      ["focusin", "focusout"],
    ]) {
      this.paper.addEventListener(over, (event) => this.point(event.target));
      this.paper.addEventListener(out, () => this.point(null));
    }
    this.area.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.area.addEventListener("pointerdown", (event) => this.drag(event));
  }

  /** The picture as it is, for a page without our styles. */
  standalone() {
    const copy = this.paper.cloneNode(true);
    const [own, there] = [this.paper, copy].map((root) => [root, ...root.querySelectorAll("*")]);
    own.forEach((element, k) => {
      const style = getComputedStyle(element);
      there[k].setAttribute("style", SAVED.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    });
    const { width, height } = this.paper.getBoundingClientRect();
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  }

  async save(form) {
    const { text, width, height } = this.standalone();
    let blob = new Blob([text], { type: "image/svg+xml" });
    if (form === "png") {
      const picture = new Image();
      picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
      await picture.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * width, 2 * height];
      const pen = canvas.getContext("2d");
      pen.fillStyle = getComputedStyle(this.root).backgroundColor;
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
      blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    }
    const link = html("a", { href: URL.createObjectURL(blob), download: `graph.${form}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // -- which boxes there are

  // The tasks to draw: all, or those chosen (a neighbourhood, some levels).
  members() {
    return this.state.chosen ?? Array.from({ length: this.graph.count }, (_, k) => k);
  }

  draw({ fit = false } = {}) {
    const { state } = this;
    const members = this.members();
    const held = this.area.contains(document.activeElement);
    this.boxes = [];
    this.links = [];
    this.remarks = this.data.hidden ? [`Not here: ${this.data.hidden}.`] : [];
    this.boxOf = new Int32Array(this.graph.count).fill(-1);
    this.paper.replaceChildren();
    const scene = state.mode === "lanes" ? this.drawLanes(members) : this.drawGraph(members);
    this.size = [scene.w + 32, scene.h + 32];
    this.boxes.forEach((box, k) => {
      box.counts = { waiting: 0, running: 0, done: 0, failed: 0 };
      for (const task of box.members) {
        this.boxOf[task] = k;
        box.counts[this.status[task]]++;
      }
      if (box.node) this.paint(box);
    });
    this.root.classList.toggle("avial-bold", state.critical);
    this.bold.setAttribute("aria-pressed", state.critical);
    this.lanes.setAttribute("aria-pressed", state.mode === "lanes");
    this.whole.disabled = !state.chosen;
    this.told.textContent = this.remarks.join(" ");
    this.showLegend();
    this.mark();
    if (this.tables.open) this.tables.dispatchEvent(new Event("toggle"));
    if (fit) this.fit();
    else this.scale(1);
    const first = this.boxes.find((box) => box.node);
    if (first) first.node.setAttribute("tabindex", "0");
    // What had the focus is gone; keys are for this picture still.
    if (held) this.area.focus({ preventScroll: true });
    this.details();
  }

  drawGraph(members) {
    if (this.state.nested && members.length <= MOST_BOXES) return this.drawNested(members);
    const boxes = this.grouped(members);
    if (!boxes) return this.drawRuns(members);
    const levels = [...new Set(boxes.map((box) => box.level))].sort((a, b) => a - b);
    const rank = new Map(levels.map((level, k) => [level, k]));
    for (const box of boxes) box.row = rank.get(box.level);
    const layer = svg("g", { transform: "translate(84 16)" });
    const size = this.compose(boxes, layer);
    const bands = svg("g", {});
    for (const level of levels) {
      const row = boxes.filter((box) => box.level === level);
      const top = Math.min(...row.map((box) => box.y)) + 16 - 10;
      const tall = Math.max(...row.map((box) => box.y + box.h)) + 16 + 10 - top;
      bands.append(svg("rect", { class: "avial-band", x: 4, y: top, width: size.w + 96, height: tall, rx: 6 }));
      bands.append(svg("text", { class: "avial-words", x: 12, y: top + tall / 2 + 4 }, `level ${level}`));
    }
    this.paper.append(bands, layer);
    return { w: size.w + 84, h: size.h };
  }

  // One box a task, or one for the tasks of one level, target and kind; null where even those are
  // too many.
  grouped(members) {
    const { graph, state } = this;
    if (this.data.runs && !state.chosen) return null;
    const groups = new Map();
    for (const task of members) {
      const key = `${graph.tasks.level[task]} ${graph.tasks.target[task]} ${graph.tasks.kind[task]}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(task);
    }
    const whole = members.length <= MOST_BOXES;
    if (!whole && groups.size > MOST_BOXES) return null;
    if (!whole && members.length > MOST_GROUPED && !state.chosen && graph.levels > 1) return null;
    const boxes = [];
    for (const [key, tasks] of groups) {
      const apart = tasks.length === 1 || (whole ? !state.folded.has(key) : state.unfolded.has(key));
      const shown = apart ? this.worthShowing(tasks, MOST_MEMBERS) : [];
      for (const task of shown) boxes.push(this.taskBox(task, key));
      const rest = apart ? tasks.filter((task) => !shown.includes(task)) : tasks;
      if (rest.length) boxes.push(this.groupBox(rest, key, apart));
    }
    const drawn = boxes.filter((box) => box.kind === "group").reduce((sum, box) => sum + box.members.length, 0);
    if (drawn)
      this.remarks.push(
        `${many(drawn, "task")} drawn as groups (same level, target and kind): Enter or a double click unfolds one.`,
      );
    return boxes;
  }

  // Failed ones first, then those on the critical path; in program order.
  worthShowing(tasks, most) {
    if (tasks.length <= most) return tasks;
    const weight = (task) => (this.status[task] === "failed" ? 0 : this.graph.path.has(task) ? 1 : 2);
    return tasks
      .slice()
      .sort((a, b) => weight(a) - weight(b) || a - b)
      .slice(0, most)
      .sort((a, b) => a - b);
  }

  taskBox(task, key = null) {
    const { graph } = this;
    const { tasks } = graph;
    const reads = graph.word("tasks", "reads", task).replace(/\[[^\]]*\]/g, "");
    const writes = graph.word("tasks", "writes", task).replace(/\[[^\]]*\]/g, "");
    const lines = [`${reads || "–"} → ${writes || "–"}`, this.where(task)];
    return this.sized({
      kind: "task",
      key,
      members: [task],
      level: tasks.level[task],
      look: tasks.look[task],
      title: graph.names[task],
      lines,
      stacked: graph.lanes(task).length > 1,
    });
  }

  where(task) {
    const lanes = this.graph.lanes(task).map((lane) => this.data.devices[lane]);
    if (!lanes.length) return this.graph.word("tasks", "target", task);
    if (lanes.length === 1) return `${lanes[0].name} · rank ${lanes[0].rank}`;
    return `${lanes.length} ranks, ${lanes[0].name} … ${lanes.at(-1).name}`;
  }

  groupBox(tasks, key, rest) {
    const { graph } = this;
    const [first, last] = [graph.names[tasks[0]], graph.names[tasks.at(-1)]];
    const box = {
      kind: "group",
      key,
      members: tasks,
      level: graph.tasks.level[tasks[0]],
      look: Math.max(...tasks.map((task) => graph.tasks.look[task])),
    };
    const title = rest ? `${tasks.length.toLocaleString("en")} more` : many(tasks.length, "task");
    return this.sized({
      ...box,
      title,
      lines: [`${first} … ${last}`, graph.word("tasks", "target", tasks[0])],
      stacked: true,
    });
  }

  sized(box) {
    const words = Math.max(
      this.width(box.title, "bold 13px") + 22,
      ...box.lines.map((line) => this.width(line, "11px")),
    );
    return Object.assign(box, {
      w: Math.min(230, Math.max(100, words + 42)),
      h: 26 + 15 * box.lines.length,
    });
  }

  width(words, font) {
    this.pen.font = `${font} ${FONT}`;
    return this.pen.measureText(words).width;
  }

  shorten(words, room, font) {
    const most = 1000; // at either end: no picture has room for more
    if (words.length > 2 * most) words = `${words.slice(0, most)}…${words.slice(-most)}`;
    else if (this.width(words, font) <= room) return words;
    const cut = (keep) => {
      const head = Math.ceil(keep / 2);
      return `${words.slice(0, head)}…${words.slice(words.length - keep + head)}`;
    };
    // The more is kept, the wider it is.
    let fits = 2;
    let not = words.length;
    while (not - fits > 1) {
      const keep = (fits + not) >> 1;
      if (this.width(cut(keep), font) <= room) fits = keep;
      else not = keep;
    }
    return fits > 2 ? cut(fits) : `${words.slice(0, 1)}…`;
  }

  // -- tasks within loops

  drawNested(members) {
    const layer = svg("g", { transform: "translate(16 16)" });
    const size = this.composeInside(members, -1, layer);
    this.paper.append(layer);
    return size;
  }

  // What is directly in a loop, and the loops within it.
  composeInside(members, around, layer) {
    const { graph } = this;
    const children = new Map();
    for (const task of members) {
      let group = graph.tasks.group[task];
      let key = `t${task}`;
      for (; group !== around; group = graph.parents[group]) key = `g${group}`;
      if (!children.has(key)) children.set(key, []);
      children.get(key).push(task);
    }
    const inner = new Map();
    const boxes = [...children].map(([key, tasks]) => {
      if (key[0] === "t") return this.taskBox(tasks[0]);
      const group = Number(key.slice(1));
      const { name, words, loop } = this.data.groups[group];
      const title = `${loop ? "↻" : "?"} ${name}`;
      if (this.state.folded.has(key)) {
        const lines = [words, many(tasks.length, "task")];
        return this.sized({
          kind: "group",
          key,
          members: tasks,
          look: graph.tasks.look[tasks[0]],
          title,
          lines,
          stacked: true,
        });
      }
      const inside = svg("g", {});
      const size = this.composeInside(tasks, group, inside);
      const head = this.width(`${title}  ${words}`, "bold 13px") + 40;
      const box = {
        kind: "frame",
        key,
        members: [],
        tasks,
        title,
        words,
        w: Math.max(head, size.w + 32),
        h: size.h + 52,
      };
      inner.set(box, [inside, size]);
      return box;
    });
    const place = new Map();
    [...children.values()].forEach((tasks, k) => tasks.forEach((task) => place.set(task, k)));
    boxes.forEach((box) => (box.row = 0));
    const forward = [];
    for (const [task, k] of place)
      for (const e of graph.from(task)) {
        const n = place.get(graph.after[e]);
        if (n !== undefined && n !== k && !graph.edges.carried[e]) forward.push([k, n]);
      }
    forward.sort((a, b) => a[0] - b[0]);
    for (let again = 0; again < boxes.length; again++)
      for (const [k, n] of forward) boxes[n].row = Math.max(boxes[n].row, boxes[k].row + 1);
    const size = this.compose(boxes, layer, place);
    for (const [box, [inside, { w }]] of inner) {
      inside.setAttribute("transform", `translate(${round(box.x + (box.w - w) / 2)} ${round(box.y + 36)})`);
      layer.append(inside);
    }
    return size;
  }

  // -- boxes and arrows

  compose(boxes, layer, place = null) {
    const { graph } = this;
    const at = place ?? new Map(boxes.flatMap((box, k) => box.members.map((task) => [task, k])));
    const bundles = new Map();
    const back = new Map();
    for (const [task, k] of at)
      for (const e of graph.from(task)) {
        const n = at.get(graph.after[e]);
        if (n === undefined) continue;
        const into = graph.edges.carried[e] ? back : bundles;
        if (n === k && into !== back) continue;
        if (into === back && (!place || graph.word("edges", "hazard", e) !== "RAW" || this.deeper(e, place))) continue;
        const key = k * boxes.length + n;
        if (!into.has(key)) into.set(key, { tail: k, head: n, edges: [], carried: into === back });
        into.get(key).edges.push(e);
      }
    const lines = [...bundles.values()];
    const labelled = lines.length <= MOST_LABELS;
    for (const line of lines) {
      if (!labelled) continue;
      line.words =
        line.edges.length > 3 ? [`${line.edges.length} dependences`] : line.edges.map((e) => graph.edgeWords(e));
      line.w = Math.max(...line.words.map((words) => this.width(words, "11px"))) + 8;
      line.h = 14 * line.words.length + 4;
    }
    if (!labelled) this.remarks.push(`${many(lines.length, "arrow")} without labels: point at one, or select it.`);
    const size = layOut(boxes, lines);
    for (const line of lines) layer.append(this.arrow(line, curve(line.stops)));
    let out = size.w;
    for (const line of back.values()) {
      const [tail, head] = [boxes[line.tail], boxes[line.head]];
      const [from, to] = [
        [tail.x + tail.w, tail.y + tail.h * 0.7],
        [head.x + head.w, head.y + head.h * 0.3],
      ];
      out += 18;
      layer.append(
        this.arrow(line, `M${from.map(round)}C${[out + 14, from[1], out + 14, to[1], to[0], to[1]].map(round)}`),
      );
    }
    for (const box of boxes) {
      this.boxes.push(box);
      layer.append(box.kind === "frame" ? this.loop(box) : this.box(box));
    }
    for (const line of lines)
      if (line.at)
        layer.append(
          ...line.words.map((words, k) =>
            svg(
              "text",
              {
                class: "avial-label",
                x: round(line.at[0]),
                y: round(line.at[1] - 7 * line.words.length + 10 + 14 * k),
              },
              words,
            ),
          ),
        );
    return { w: back.size ? out + 22 : size.w, h: size.h };
  }

  // Whether a loop further in is around both ends: then it is drawn there.
  deeper(edge, place) {
    const { before, after } = this.graph;
    return (
      place.get(before[edge]) === place.get(after[edge]) &&
      this.graph.tasks.group[before[edge]] !== -1 &&
      [...place.values()].filter((k) => k === place.get(before[edge])).length > 1
    );
  }

  arrow(line, d) {
    const { graph } = this;
    const word = (e) => graph.word("edges", "hazard", e);
    const classes = ["avial-edge"];
    if (line.edges.some((e) => graph.edges.message?.[e])) classes.push("avial-message");
    if (line.carried) classes.push("avial-later");
    else if (!line.edges.some((e) => word(e) === "RAW")) classes.push("avial-order");
    if (line.edges.some((e) => graph.critical(e))) classes.push("avial-critical");
    const made = svg(
      "g",
      { class: classes.join(" ") },
      svg("path", { class: "avial-reach", d }),
      svg("path", { class: "avial-stroke", d, "marker-end": `url(#${this.id}-head)` }),
    );
    made.prepend(
      svg(
        "title",
        {},
        line.edges
          .slice(0, 6)
          .map((e) => this.edgeSentence(e))
          .join("\n"),
      ),
    );
    made.avial = { kind: "edge", line };
    line.node = made;
    this.links.push(line);
    return made;
  }

  box(box) {
    const { w, h } = box;
    const look = this.data.looks[box.look];
    const node = dressed(look, "g", {
      class: "avial-node",
      transform: `translate(${round(box.x)} ${round(box.y)})`,
      tabindex: "-1",
      role: "button",
      "aria-pressed": "false",
    });
    const outline = this.outline(look, w, h);
    if (box.stacked)
      node.append(
        svg("path", { class: "avial-shape", d: outline, transform: "translate(6 6)" }),
        svg("path", { class: "avial-shape", d: outline, transform: "translate(3 3)" }),
      );
    node.append(svg("path", { class: "avial-shape avial-front", d: outline }));
    const inner = this.outline(look, 18, h, w);
    node.append(
      svg("path", { class: "avial-strip", d: inner }),
      svg("text", { class: "avial-letter", x: 9, y: h / 2 + 4.5 }, look.letter),
    );
    node.append(
      svg(
        "text",
        { class: "avial-name", x: 26, y: box.lines.length ? 18 : h / 2 + 4.5 },
        this.shorten(box.title, w - 52, "bold 13px"),
      ),
    );
    box.lines.forEach((line, k) =>
      node.append(svg("text", { class: "avial-words", x: 26, y: 34 + 15 * k }, this.shorten(line, w - 34, "11px"))),
    );
    box.glyph = svg("text", { class: "avial-glyph", x: w - 14, y: 18 });
    box.tip = svg("title", {});
    node.append(box.glyph);
    node.prepend(box.tip);
    if (box.members.some((task) => this.graph.path.has(task))) node.classList.add("avial-critical");
    node.avial = box;
    box.node = node;
    return node;
  }

  // With round corners, or cut ones; `strip`: only the left part of it.
  outline(look, w, h, strip = 0) {
    const c = look.cut ? 8 : 7;
    const corner = look.cut ? (dx, dy) => `l${dx} ${dy}` : (dx, dy) => `a7 7 0 0 1 ${dx} ${dy}`;
    const right = strip
      ? `h${w - c}v${h}h${c - w}`
      : `h${w - 2 * c}${corner(c, c)}v${h - 2 * c}${corner(-c, c)}h${2 * c - w}`;
    return `M${c} 0${right}${corner(-c, -c)}v${2 * c - h}${corner(c, -c)}z`;
  }

  loop(box) {
    const node = svg("g", {
      class: "avial-frame",
      transform: `translate(${round(box.x)} ${round(box.y)})`,
      tabindex: "-1",
      role: "button",
      "aria-label": `${box.title}, ${box.words}: Enter folds it`,
    });
    node.append(
      svg("rect", { width: box.w, height: box.h, rx: 10 }),
      svg("text", { class: "avial-name", x: 14, y: 21 }, box.title),
    );
    node.append(
      svg("text", { class: "avial-words", x: 14 + this.width(`${box.title}  `, "bold 13px"), y: 21 }, box.words),
    );
    node.avial = box;
    box.frame = node;
    return node;
  }

  // -- levels as bars, where there are too many tasks

  drawRuns(members) {
    const { graph } = this;
    const { step, bars } = this.runs(members);
    const size = (looks) => looks.reduce((sum, number) => sum + number, 0);
    const longest = bars.reduce((most, bar) => Math.max(most, size(bar.looks)), 0);
    const layer = svg("g", { transform: "translate(16 16)" });
    bars.forEach(({ first, last, tasks, looks }, k) => {
      const name =
        first === last
          ? `level ${first.toLocaleString("en")}`
          : `levels ${first.toLocaleString("en")}–${last.toLocaleString("en")}`;
      const box = {
        kind: "run",
        members: tasks,
        title: name,
        lines: [many(size(looks), "task")],
        x: 0,
        y: 24 * k,
        w: 560,
        h: 22,
      };
      const node = svg("g", {
        class: "avial-run",
        transform: `translate(0 ${24 * k})`,
        tabindex: "-1",
        role: "button",
      });
      node.append(
        svg("rect", { class: "avial-reach", width: 700, height: 22 }),
        svg("text", { class: "avial-words", x: 0, y: 15 }, name),
      );
      let x = 130;
      looks.forEach((number, kind) => {
        if (!number) return;
        const look = this.data.looks[kind];
        const w = Math.max(3, (380 * number) / longest);
        const bar = dressed(
          look,
          "g",
          { transform: `translate(${round(x)} 1)` },
          svg("rect", { class: "avial-shape", width: round(w), height: 20, rx: look.cut ? 0 : 3 }),
        );
        if (w > 60)
          bar.append(
            svg("text", { class: "avial-words", x: 6, y: 14 }, `${look.letter} ${number.toLocaleString("en")}`),
          );
        node.append(bar);
        x += w;
      });
      const critical = tasks.reduce((sum, task) => sum + graph.path.has(task), 0);
      box.glyph = svg("text", { class: "avial-glyph avial-start", x: x + 8, y: 16 });
      box.after = `${many(size(looks), "task")}${critical ? `, ${critical.toLocaleString("en")} critical` : ""}`;
      node.append(box.glyph);
      box.tip = svg("title", {});
      node.prepend(box.tip);
      node.avial = box;
      box.node = node;
      this.boxes.push(box);
      layer.append(node);
    });
    this.paper.append(layer);
    this.remarks.push(
      `${many(
        bars.reduce((sum, bar) => sum + size(bar.looks), 0),
        "task",
      )} are too many to draw one by one: each bar is ${step === 1 ? "one level" : `${step.toLocaleString("en")} levels`}. Enter or a double click opens one; the critical path and what a search finds are drawn with their neighbours.`,
    );
    return { w: 740, h: 24 * bars.length };
  }

  // Runs of levels with their tasks, and how many of each look they hold; where not all tasks are
  // carried the counts are of all the same.
  runs(members) {
    const { graph, data, state } = this;
    const counted = state.chosen ? null : data.runs;
    const levels = members.map((task) => graph.tasks.level[task]);
    const low = counted ? 0 : levels.reduce((a, b) => Math.min(a, b), Infinity);
    const high = counted ? data.totals.levels - 1 : levels.reduce((a, b) => Math.max(a, b), 0);
    const unit = counted?.step ?? 1;
    const step = unit * Math.ceil((high - low + 1) / MOST_BARS / unit);
    const bars = [];
    for (let first = low; first <= high; first += step)
      bars.push({ first, last: Math.min(high, first + step - 1), tasks: [], looks: data.looks.map(() => 0) });
    members.forEach((task, k) => {
      const bar = bars[Math.floor((levels[k] - low) / step)];
      bar.tasks.push(task);
      if (!counted) bar.looks[graph.tasks.look[task]]++;
    });
    counted?.rows.forEach((row, k) => {
      const bar = bars[Math.floor((k * unit) / step)];
      row.forEach((number, look) => (bar.looks[look] += number));
    });
    return { step, bars };
  }

  // -- lanes: one row per device, box length: cost

  drawLanes(members) {
    const { graph, data } = this;
    const { tasks } = graph;
    const free = data.devices.map(() => 0);
    const end = new Float64Array(graph.count);
    const start = new Float64Array(graph.count);
    for (const task of members) {
      let from = 0;
      for (const e of graph.into(task)) if (!graph.edges.carried[e]) from = Math.max(from, end[graph.before[e]]);
      for (const lane of graph.lanes(task)) from = Math.max(from, free[lane]);
      start[task] = from;
      end[task] = from + tasks.cost[task] / (data.path.measured ? 1 : Math.max(1, graph.lanes(task).length));
      for (const lane of graph.lanes(task)) free[lane] = end[task];
    }
    const total = Math.max(...free) || 1;
    const [left, pitch] = [120, 40];
    const few = members.length <= MOST_GROUPED;
    const named = few ? Math.max(...members.map((task) => this.width(graph.names[task], "bold 13px"))) + 56 : 0;
    const wide = Math.max(
      520,
      Math.min(4000, Math.min(named, 150) * Math.max(...lanesFill(members, graph, data.devices.length))),
    );
    const layer = svg("g", { transform: "translate(16 16)" });
    data.devices.forEach((device, lane) => {
      const look = data.looks[device.look];
      layer.append(
        svg("rect", {
          class: "avial-band",
          x: 0,
          y: pitch * lane,
          width: left + wide + 8,
          height: pitch - 6,
          rx: 6,
        }),
      );
      layer.append(
        svg("text", { class: "avial-name", x: 8, y: pitch * lane + 15 }, `${look.letter} ${device.name}`),
        svg(
          "text",
          { class: "avial-words", x: 8, y: pitch * lane + 29 },
          `rank ${device.rank}${look.after_rank}`,
        ),
      );
    });
    const x = (time) => left + (wide * time) / total;
    if (few) {
      for (const task of members)
        graph.lanes(task).reduce((first, lane) => {
          const w = Math.max(3, x(end[task]) - x(start[task]) - 1);
          const box = {
            kind: "task",
            members: [task],
            look: tasks.look[task],
            title: graph.names[task],
            lines: [],
            x: x(start[task]),
            y: pitch * lane + 4,
            w,
            h: pitch - 14,
          };
          const node = w > 44 ? this.box(box) : this.sliver(box);
          layer.append(node);
          if (first) first.copies.push(box);
          else this.boxes.push(Object.assign(box, { copies: [] }));
          return first ?? box;
        }, null);
    } else {
      this.heat(members, start, end, total, layer, x, pitch);
      this.remarks.push(`${many(members.length, "task")}: column height: how busy the device is.`);
    }
    if (few) this.drawMessages(layer);
    const unit = data.path.measured ? "measured times" : "estimated from the bytes each task touches";
    this.remarks.push(
      `Lengths are ${unit}; each task starts once its dependences and its device allow. Messages take no time here.`,
    );
    layer.append(
      svg("text", { class: "avial-words", x: left, y: pitch * data.devices.length + 14 }, "0"),
      svg(
        "text",
        { class: "avial-words avial-end", x: left + wide, y: pitch * data.devices.length + 14 },
        graph.cost(total),
      ),
    );
    this.paper.append(layer);
    return { w: left + wide + 12, h: pitch * data.devices.length + 20 };
  }

  // From lane to lane, where these are not too many to follow.
  drawMessages(layer) {
    const { graph } = this;
    const at = new Map(this.boxes.map((box) => [box.members[0], box]));
    const bundles = new Map();
    graph.before.forEach((before, e) => {
      const [tail, head] = [at.get(before), at.get(graph.after[e])];
      if (!graph.edges.message?.[e] || !tail || !head) return;
      const key = before * graph.count + graph.after[e];
      if (!bundles.has(key)) bundles.set(key, { tail, head, edges: [] });
      bundles.get(key).edges.push(e);
    });
    if (bundles.size > MOST_BOXES) {
      this.remarks.push(`${many(bundles.size, "message")} between lanes are not drawn: too many to be legible.`);
      return;
    }
    for (const line of bundles.values()) {
      const { tail, head } = line;
      const down = head.y > tail.y;
      const [ax, ay, bx, by] = [
        tail.x + tail.w - 6,
        down ? tail.y + tail.h : tail.y,
        head.x + 6,
        down ? head.y : head.y + head.h,
      ];
      const bend = (by - ay) / 2;
      layer.append(this.arrow(line, `M${[ax, ay].map(round)}C${[ax, ay + bend, bx, by - bend, bx, by].map(round)}`));
    }
  }

  // A box too narrow for words.
  sliver(box) {
    const node = dressed(this.data.looks[box.look], "g", {
      class: "avial-node",
      transform: `translate(${round(box.x)} ${box.y})`,
      tabindex: "-1",
      role: "button",
      "aria-pressed": "false",
    });
    box.tip = svg("title", {});
    node.append(box.tip, svg("rect", { class: "avial-shape avial-front", width: round(box.w), height: box.h, rx: 1 }));
    if (this.graph.path.has(box.members[0])) node.classList.add("avial-critical");
    node.avial = box;
    box.node = node;
    return node;
  }

  heat(members, start, end, total, layer, x, pitch) {
    const columns = 240;
    const busy = this.data.devices.map(() => new Float64Array(columns));
    for (const task of members)
      for (const lane of this.graph.lanes(task)) {
        const [a, b] = [(start[task] / total) * columns, (end[task] / total) * columns];
        for (let k = Math.floor(a); k < Math.min(columns, b); k++) busy[lane][k] += Math.min(b, k + 1) - Math.max(a, k);
      }
    busy.forEach((shares, lane) => {
      const base = pitch * lane + pitch - 8;
      let d = `M${x(0)} ${base}`;
      shares.forEach(
        (share, k) =>
          (d += `V${round(base - Math.min(1, share) * (pitch - 10))}H${round(x((total * (k + 1)) / columns))}`),
      );
      layer.append(
        dressed(
          this.data.looks[this.data.devices[lane].look],
          "g",
          {},
          svg("path", { class: "avial-shape", d: `${d}V${base}z` }),
        ),
      );
    });
  }

  // -- how far a run is

  // status: {task: state}; only the boxes of tasks that changed are touched.
  update({ status = {}, ...data }) {
    if (data.totals) {
      this.open(data);
      return;
    }
    if (!this.graph) {
      this.early.push({ status });
      return;
    }
    const changed = new Set();
    for (const [name, news] of Object.entries(status)) {
      const task = this.graph.index.get(name);
      const { state, note = "" } = typeof news === "string" ? { state: news } : news;
      if (task === undefined || !(state in GLYPHS)) continue;
      const box = this.boxes[this.boxOf[task]];
      if (box) {
        box.counts[this.status[task]]--;
        box.counts[state]++;
        changed.add(box);
      }
      this.totals[this.status[task]]--;
      this.totals[state]++;
      this.status[task] = state;
      this.notes.set(task, note);
    }
    for (const box of changed) this.paint(box);
    this.showProgress();
  }

  showProgress() {
    const counts = this.totals;
    const running = counts.waiting < this.status.length;
    const words = ["running", "done", "failed"].map(
      (state) => `${GLYPHS[state]} ${counts[state].toLocaleString("en")} ${state}`,
    );
    this.progress.textContent = running ? `${words.join(" · ")} of ${many(this.status.length, "task")}` : "";
    this.progress.classList.toggle("avial-failed", counts.failed > 0);
  }

  // The worst state of what is in a box shows.
  paint(box) {
    if (!box.node) return;
    for (const copy of box.copies ?? []) this.paint(Object.assign(copy, { counts: box.counts }));
    const of = box.members.length;
    const { counts } = box;
    const state = counts.failed ? "failed" : counts.running ? "running" : of && counts.done === of ? "done" : "waiting";
    for (const each of STATES) box.node.classList.toggle(`avial-is-${each}`, each === state);
    const counted =
      state === "done" || of === 1
        ? ""
        : counts.failed || counts.running
          ? ` ${counts[state].toLocaleString("en")}`
          : "";
    if (box.glyph) box.glyph.textContent = `${GLYPHS[state]}${counted}${box.after ? ` ${box.after}` : ""}`.trim();
    const note = of === 1 ? this.notes.get(box.members[0]) : "";
    const words = [box.title, ...box.lines, this.data.looks[box.look]?.name ?? "", state === "waiting" ? "" : state, note];
    if (box.node.classList.contains("avial-critical")) words.push("on the critical path");
    const told = words.filter(Boolean).join(", ");
    box.node.setAttribute("aria-label", told);
    box.tip.textContent = of === 1 ? this.taskSentence(box.members[0]) : told;
  }

  // -- what is selected, pointed at, searched

  point(target) {
    const made = target?.closest?.(".avial-node, .avial-edge, .avial-run");
    if (made === this.pointed) return;
    this.pointed = made;
    const line = made?.avial?.line;
    const box = line ? null : made?.avial;
    for (const link of this.links) {
      const lit =
        link === line ||
        (box &&
          box.node &&
          link.edges.some(
            (e) => box.members.includes(this.graph.before[e]) || box.members.includes(this.graph.after[e]),
          ));
      link.node.classList.toggle("avial-lit", Boolean(lit));
    }
    this.details(made?.avial);
  }

  click(event) {
    const made = event.target.closest(".avial-node, .avial-edge, .avial-run, .avial-frame");
    if (event.detail === 2 && made?.avial?.kind !== "edge") this.openBox(made?.avial);
    else this.select(made?.avial ?? null);
  }

  select(thing) {
    this.selected = thing;
    for (const box of this.boxes) box.node?.setAttribute("aria-pressed", String(box === thing));
    for (const link of this.links) link.node.classList.toggle("avial-chosen", link === thing?.line);
    if (thing?.node && thing.kind !== "edge") this.land(thing.node);
    this.details();
    if (thing) this.say(this.panel.firstChild?.textContent ?? "");
  }

  selectTask(task) {
    let box = this.boxes[this.boxOf[task]];
    if (!box?.node || box.kind !== "task") {
      this.focus([task]);
      box = this.boxes[this.boxOf[task]];
    }
    this.select(box);
    box?.node.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  find(query) {
    const { graph } = this;
    if (!graph) return;
    const wanted = query.trim().toLowerCase();
    const buffers = new RegExp(`(^|[ ,])${wanted.replace(/[^\w]/g, "\\$&")}(\\[|,|$)`);
    const touched = (column, task) => buffers.test(graph.word("tasks", column, task).toLowerCase());
    this.hits = [];
    if (wanted)
      for (let task = 0; task < graph.count; task++)
        if (graph.names[task].toLowerCase().includes(wanted) || touched("reads", task) || touched("writes", task))
          this.hits.push(task);
    this.hit = -1;
    this.found.textContent = wanted ? `${this.hits.length.toLocaleString("en")} found` : "";
    this.mark();
  }

  nextHit(by) {
    if (!this.hits.length) return;
    this.hit = Math.max(this.hit + by, by < 0 && this.hit <= 0 ? this.hits.length - 1 : 0) % this.hits.length;
    this.found.textContent = `${(this.hit + 1).toLocaleString("en")} of ${this.hits.length.toLocaleString("en")}`;
    this.selectTask(this.hits[this.hit]);
    this.search.focus();
  }

  mark() {
    const hits = new Set(this.hits);
    for (const box of this.boxes)
      box.node?.classList.toggle("avial-hit", hits.size > 0 && box.members.some((task) => hits.has(task)));
  }

  // -- what is drawn next

  show(mode) {
    this.state.mode = mode;
    this.draw({ fit: true });
  }

  showAll() {
    Object.assign(this.state, { chosen: null, around: null });
    this.draw({ fit: true });
    this.area.focus();
  }

  // Only what is at most so many steps from the tasks.
  focus(tasks = this.selected?.members) {
    if (!tasks?.length) {
      this.told.textContent = "Select a task first: click it, or go to it with the arrow keys and press Enter.";
      return;
    }
    const most = MOST_BOXES;
    const found = new Set();
    for (const task of tasks.slice(0, most))
      for (const near of this.graph.around(task, this.state.hops, this.state.hops, most))
        if (found.size < most) found.add(near);
    Object.assign(this.state, {
      mode: "graph",
      around: tasks,
      chosen: [...found].sort((a, b) => a - b),
    });
    this.selected = null;
    this.draw({ fit: true });
    if (found.size >= most) this.told.textContent += ` The first ${most} neighbours are drawn.`;
    this.select(this.boxes[this.boxOf[tasks[0]]]);
  }

  emphasise() {
    const { state, graph } = this;
    state.critical = !state.critical;
    const hidden = graph.data.path.tasks.some((task) => this.boxes[this.boxOf[task]]?.kind !== "task");
    if (state.critical && hidden && !state.nested && state.mode === "graph") {
      const path = graph.data.path.tasks.slice(0, MOST_BOXES);
      Object.assign(state, { chosen: path.slice().sort((a, b) => a - b), around: path });
      this.draw({ fit: true });
      if (path.length < graph.path.size)
        this.told.textContent += ` The first ${path.length} of ${many(graph.path.size, "task")} on the path are drawn.`;
    } else this.draw();
    this.say(graph.data.path.words);
  }

  // A group unfolds, a loop folds, a bar shows its levels.
  openBox(box) {
    if (!box) return;
    const { state } = this;
    const toggled = (set) => (set.has(box.key) ? set.delete(box.key) : set.add(box.key));
    if (box.kind === "run") {
      Object.assign(state, { chosen: box.members, around: null });
      this.draw({ fit: true });
      return;
    }
    if (box.kind === "task" && !box.key) return;
    toggled(this.members().length <= MOST_BOXES ? state.folded : state.unfolded);
    this.draw();
  }

  fold(fold) {
    const { state, graph } = this;
    state.folded.clear();
    state.unfolded.clear();
    if (state.nested && fold) this.data.groups.forEach((group, k) => graph.parents[k] < 0 && state.folded.add(`g${k}`));
    else
      for (const task of this.members())
        (fold ? state.folded : state.unfolded).add(
          `${graph.tasks.level[task]} ${graph.tasks.target[task]} ${graph.tasks.kind[task]}`,
        );
    this.draw({ fit: true });
  }

  // -- size and keys

  scale(by) {
    this.zoom = Math.min(4, Math.max(0.15, this.zoom * by));
    const [w, h] = this.size;
    this.paper.setAttribute("viewBox", `0 0 ${w} ${h}`);
    this.paper.setAttribute("width", w * this.zoom);
    this.paper.setAttribute("height", h * this.zoom);
  }

  fit() {
    const room = (this.area.clientWidth || this.size[0]) - 4;
    this.zoom = Math.max(0.5, Math.min(1, room / this.size[0]));
    this.scale(1);
  }

  wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.scale(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }

  drag(event) {
    if (event.button || event.target.closest(".avial-node, .avial-edge, .avial-run")) return;
    const { area } = this;
    const from = [event.clientX + area.scrollLeft, event.clientY + area.scrollTop];
    const move = (to) => area.scrollTo(from[0] - to.clientX, from[1] - to.clientY);
    area.addEventListener("pointermove", move);
    window.addEventListener("pointerup", () => area.removeEventListener("pointermove", move), {
      once: true,
    });
  }

  key(event) {
    if (!this.graph || event.altKey || event.ctrlKey || event.metaKey) return;
    const box = document.activeElement?.avial ?? null;
    const acts = {
      "+": () => this.scale(1.25),
      "=": () => this.scale(1.25),
      "-": () => this.scale(1 / 1.25),
      0: () => this.fit(),
      f: () => this.focus(box?.members),
      g: () => this.fold(true),
      u: () => this.fold(false),
      c: () => this.emphasise(),
      Escape: () => this.showAll(),
      "/": () => this.search.focus(),
      Enter: () => ((box && box === this.selected) || box?.kind === "frame" ? this.openBox(box) : this.select(box)),
      " ": () => this.select(box),
    };
    if (event.shiftKey && event.key.startsWith("Arrow")) {
      const by = {
        ArrowLeft: [-60, 0],
        ArrowRight: [60, 0],
        ArrowUp: [0, -60],
        ArrowDown: [0, 60],
      }[event.key];
      this.area.scrollBy(...by);
    } else if (event.key.startsWith("Arrow")) this.step(event.key, box);
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // To the nearest box that way.
  step(key, from) {
    const boxes = this.boxes.filter((box) => box.node);
    if (!boxes.length) return;
    if (!from?.node) {
      this.land(boxes[0].node);
      return;
    }
    const middle = (box) => {
      const at = box.node.getBoundingClientRect();
      return [at.x + at.width / 2, at.y + at.height / 2];
    };
    const [x, y] = middle(from);
    const [dx, dy] = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    }[key];
    let [best, least] = [null, Infinity];
    for (const box of boxes) {
      const [a, b] = middle(box);
      const along = (a - x) * dx + (b - y) * dy;
      const away = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
      if (along > 4 && along + 2.5 * away < least) [best, least] = [box, along + 2.5 * away];
    }
    if (best) this.land(best.node);
  }

  land(node) {
    for (const box of this.boxes) box.node?.setAttribute("tabindex", box.node === node ? "0" : "-1");
    if (document.activeElement !== node && this.area.contains(document.activeElement)) node.focus();
  }

  // -- words

  edgeSentence(e) {
    const { graph } = this;
    const [hazard, buffer, region] = ["hazard", "buffer", "region"].map((column) => graph.word("edges", column, e));
    const crosses = graph.crosses(e);
    const [before, after] = [graph.names[graph.before[e]], graph.names[graph.after[e]]];
    const later = graph.edges.carried[e] ? "a later " : "";
    const what = buffer ? `: ${hazard} ${buffer}${region}, ${bytes(graph.edges.bytes[e])}` : "";
    return `${later}${after} waits for ${before}, it ${WHY[hazard] ?? hazard}${what}${crosses ? `, ${crosses}` : ""}${graph.edges.message?.[e] ? ", sent as a message" : ""}`;
  }

  taskSentence(task) {
    const { graph } = this;
    const [summary, target, reads, writes] = ["summary", "target", "reads", "writes"].map((column) =>
      graph.word("tasks", column, task),
    );
    return `${graph.names[task]}: ${summary || "task"} for ${target}, reads ${reads || "–"}, writes ${writes || "–"}; slack ${graph.cost(graph.tasks.slack[task])}`;
  }

  details(thing = this.selected) {
    const parts = !thing
      ? this.graphDetails()
      : thing.kind === "edge"
        ? this.edgeDetails(thing.line)
        : thing.members.length === 1
          ? this.taskDetails(thing.members[0])
          : this.groupDetails(thing);
    this.panel.replaceChildren(...parts);
  }

  graphDetails() {
    const { data } = this;
    const rows = [["critical path", data.path.words.replace(/^critical path: /, "")]];
    return [
      html("h4", {}, data.title),
      facts(rows),
      html(
        "p",
        { class: "avial-quiet" },
        "Point at a task or an arrow to see why it is there. Click or Enter selects it; f: its neighbours only; c: critical path; + − 0: zoom.",
      ),
    ];
  }

  taskFacts(task) {
    const { graph, data } = this;
    const { tasks } = graph;
    const word = (column) => graph.word("tasks", column, task);
    const note = this.notes.get(task);
    const state = this.status[task];
    return [
      ["state", state === "waiting" ? "" : `${GLYPHS[state]} ${state}${note ? `, ${note}` : ""}`],
      ["level", String(tasks.level[task])],
      ["target", `${word("target")} (${this.data.looks[tasks.look[task]].name})`],
      ["runs on", graph.lanes(task).length ? this.where(task) : ""],
      ["why there", word("why")],
      ["kind", word("kind")],
      ["body", word("summary")],
      ["reads", word("reads")],
      ["writes", word("writes")],
      [data.path.measured ? "time (measured)" : "touches (estimate)", graph.cost(tasks.cost[task])],
      ["slack", graph.path.has(task) ? "0, on the critical path" : graph.cost(tasks.slack[task])],
      ["cell line", tasks.line[task] ? String(tasks.line[task]) : ""],
    ];
  }

  taskDetails(task) {
    const { graph } = this;
    return [
      html("h4", {}, graph.names[task]),
      facts(this.taskFacts(task)),
      ...this.edgeList("waits for", graph.into(task), graph.before),
      ...this.edgeList("needed by", graph.from(task), graph.after),
    ];
  }

  edgeList(title, edges, end) {
    if (!edges.length) return [];
    const list = html("ul", {});
    for (const e of Array.from(edges).slice(0, MOST_LISTED)) {
      const go = html(
        "button",
        { type: "button", class: "avial-link", title: this.edgeSentence(e) },
        this.graph.names[end[e]],
      );
      go.addEventListener("click", () => this.selectTask(end[e]));
      const lit = (on) => () =>
        this.links.forEach((link) => link.node.classList.toggle("avial-lit", on && link.edges.includes(e)));
      go.addEventListener("focus", lit(true));
      go.addEventListener("blur", lit(false));
      const region = this.graph.word("edges", "region", e);
      const crosses = this.graph.crosses(e);
      const hazard = this.graph.word("edges", "hazard", e);
      list.append(
        html(
          "li",
          {},
          go,
          ` ${this.graph.edgeWords(e)}${region ? ` ${region}` : ""}${crosses ? `, ${crosses}` : ""}${this.graph.edges.carried[e] ? ", a later iteration" : ""}`,
          html("span", { class: "avial-quiet" }, ` ${WHY[hazard] ?? ""}`),
        ),
      );
    }
    if (edges.length > MOST_LISTED)
      list.append(html("li", { class: "avial-quiet" }, `and ${edges.length - MOST_LISTED} more`));
    return [html("h5", {}, `${title} (${edges.length})`), list];
  }

  edgeFacts(e) {
    const { graph } = this;
    const [hazard, buffer] = ["hazard", "buffer"].map((column) => graph.word("edges", column, e));
    return [
      ["before", graph.names[graph.before[e]]],
      ["after", graph.names[graph.after[e]]],
      ["hazard", `${hazard}: ${WHY[hazard] ?? ""}`],
      ["buffer", buffer],
      ["region", graph.word("edges", "region", e)],
      ["bytes", buffer ? bytes(graph.edges.bytes[e]) : ""],
      ["between", graph.crosses(e)],
      ["message", graph.edges.message?.[e] ? "sent from rank to rank" : ""],
      ["iteration", graph.edges.carried[e] ? "a later one" : ""],
      ["critical", graph.critical(e) ? "a step of the critical path" : ""],
    ];
  }

  // The first tasks and edges of what is drawn, for who reads rather than looks.
  rows() {
    const { graph } = this;
    const shown = new Set(this.members());
    const tasks = [...shown];
    const edges = tasks
      .slice(0, MOST_ROWS)
      .flatMap((task) => [...graph.into(task)].filter((e) => shown.has(graph.before[e])));
    const tasksTable = table("Tasks", tasks, (task) => [["task", graph.names[task]], ...this.taskFacts(task)]);
    return [...tasksTable, ...table("Edges", edges, (e) => this.edgeFacts(e))];
  }

  edgeDetails(line) {
    const parts = [
      html("h4", {}, line.edges.length === 1 ? "Why this arrow" : `Why this arrow: ${line.edges.length} dependences`),
    ];
    for (const e of line.edges.slice(0, 8)) parts.push(facts(this.edgeFacts(e)));
    if (line.edges.length > 8) parts.push(html("p", { class: "avial-quiet" }, `and ${line.edges.length - 8} more`));
    return parts;
  }

  groupDetails(box) {
    const counts = STATES.filter((state) => box.counts?.[state] && state !== "waiting").map(
      (state) => `${GLYPHS[state]} ${box.counts[state]} ${state}`,
    );
    const members = box.members.length ? box.members : (box.tasks ?? []);
    const open = html(
      "button",
      { type: "button" },
      box.kind === "frame" ? "Fold" : box.kind === "run" ? "Show these levels" : "Unfold",
    );
    open.addEventListener("click", () => this.openBox(box));
    const list = html("ul", {});
    for (const task of this.worthShowing(members, MOST_LISTED)) {
      const go = html("button", { type: "button", class: "avial-link" }, this.graph.names[task]);
      go.addEventListener("click", () => this.selectTask(task));
      list.append(
        html("li", {}, go, this.graph.path.has(task) ? " on the critical path" : "", ` ${GLYPHS[this.status[task]]}`),
      );
    }
    if (members.length > MOST_LISTED)
      list.append(
        html("li", { class: "avial-quiet" }, `and ${(members.length - MOST_LISTED).toLocaleString("en")} more`),
      );
    return [
      html("h4", {}, box.title),
      facts([
        ["holds", many(members.length, "task")],
        ["state", counts.join(", ")],
        ["", box.words ?? ""],
      ]),
      html("p", {}, open),
      list,
    ];
  }

  showLegend() {
    const looks = new Set();
    for (const box of this.boxes) for (const task of box.members.slice(0, 200)) looks.add(this.graph.tasks.look[task]);
    const item = (shape, words) => html("span", { class: "avial-item" }, shape, ` ${words}`);
    const mark = (...inside) => svg("svg", { width: 28, height: 16, "aria-hidden": "true" }, ...inside);
    const items = [...looks]
      .sort()
      .map((kind) => this.data.looks[kind])
      .map((look) =>
        item(
          mark(
            dressed(
              look,
              "g",
              { transform: "translate(1 0)" },
              svg("path", { class: "avial-shape", d: this.outline(look, 26, 15) }),
              svg("text", { class: "avial-letter avial-ink", x: 13, y: 12 }, look.letter),
            ),
          ),
          look.name,
        ),
      );
    const kinds = [
      ["", "value"],
      ["avial-message", "value sent to another rank"],
      ["avial-order", "order only (WAR, WAW, after)"],
      ["avial-later", "value for a later iteration"],
      ["avial-critical", "critical path"],
    ];
    for (const [kind, words] of kinds) {
      const there = this.links.some((link) =>
        kind ? link.node.classList.contains(kind) : !/message|order|later/.test(link.node.getAttribute("class")),
      );
      if (there && (kind !== "avial-critical" || this.state.critical))
        items.push(
          item(
            mark(svg("g", { class: `avial-edge ${kind}` }, svg("path", { class: "avial-stroke", d: "M1 8H26" }))),
            words,
          ),
        );
    }
    this.legend.replaceChildren(...items);
    const head = svg(
      "marker",
      {
        id: `${this.id}-head`,
        viewBox: "0 0 10 10",
        refX: 9,
        refY: 5,
        markerWidth: 9,
        markerHeight: 9,
        markerUnits: "userSpaceOnUse",
        orient: "auto",
      },
      svg("path", { d: "M0 0L10 5L0 10z", fill: "context-stroke" }),
    );
    this.paper.prepend(svg("defs", {}, head));
  }
}

// How many boxes are in each lane.
function lanesFill(members, graph, lanes) {
  const fill = new Array(lanes).fill(1);
  for (const task of members) for (const lane of graph.lanes(task)) fill[lane]++;
  return fill;
}

// -- elements -------------------------------------------------------------------------------------

function svg(name, attributes, ...children) {
  return made(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

// A part of the picture in the colours and dashes of a kind of device, which graph.css reads.
function dressed(look, name, attributes, ...children) {
  const node = svg(name, attributes, ...children);
  node.style.setProperty("--avial-own", look.colour);
  node.style.setProperty("--avial-on", look.ink);
  node.style.setProperty("--avial-dash", look.dash || "none");
  return node;
}

function html(name, attributes, ...children) {
  return made(document.createElement(name), attributes, children);
}

// JupyterLab takes keys before an element sees them, unless the very one that has the focus says no.
const FOCUSED = /^(button|select|summary|input)$/;

function made(element, attributes, children) {
  if (FOCUSED.test(element.localName) || "tabindex" in attributes)
    element.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The first rows, each [[column, value], …]; a column that is empty in all of them is left out.
function table(title, items, row) {
  const rows = items.slice(0, MOST_ROWS).map(row);
  if (!rows.length) return [];
  const used = rows[0].map((_, k) => rows.some((each) => each[k][1]));
  const cells = (name, values) =>
    html(
      "tr",
      {},
      ...values.filter((_, k) => used[k]).map((value) => html(name, name === "th" ? { scope: "col" } : {}, value)),
    );
  const head = html(
    "thead",
    {},
    cells(
      "th",
      rows[0].map(([column]) => column),
    ),
  );
  const body = html(
    "tbody",
    {},
    ...rows.map((each) =>
      cells(
        "td",
        each.map(([, value]) => value),
      ),
    ),
  );
  const rest = items.length - rows.length;
  return [
    html("table", {}, html("caption", {}, title), head, body),
    ...(rest > 0 ? [html("p", { class: "avial-quiet" }, `and ${rest.toLocaleString("en")} more, not listed`)] : []),
  ];
}

// Those that have a value, as a list of terms.
function facts(rows) {
  const list = html("dl", {});
  for (const [name, value] of rows) if (value) list.append(html("dt", {}, name), html("dd", {}, value));
  return list;
}
