// The timeline of a run: a row for each rank and device, to zoom into and ask.
//
// Data of timeline.py -> canvas with keyboard, filters, messages, the critical path and tables.
// Times are nanoseconds from the first start of the run.

const GUTTER = 190; // pixels left of the rows, for names and shares
const ROW = 36;
const BAR = 26;
const AXIS = 24;
const MOST_ARROWS = 400;
const MOST_NAMED = 10;
const HINT =
  "Click or Tab into the chart, then: wheel or + and − zoom, drag or ← → pan, 0 shows all, " +
  "n and p move between events, j and k between rows, Enter zooms to one, Escape deselects.";

let mounts = 0;

export function mount(host, data, { say } = {}) {
  const view = new Timeline(host, data, say, ++mounts);
  return {
    update: (newer) => view.update(newer),
    dispose: () => view.dispose(),
  };
}

// Small things ---------------------------------------------------------------------------------

function element(tag, className = "", text = "", attributes = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function formatTime(ns) {
  const size = Math.abs(ns);
  for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (size >= scale) return `${+(ns / scale).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

/** A time on the axis: as many digits as distinguish it from its neighbours `step` away. */
function formatTick(ns, step) {
  const [scale, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(
    ([scale]) => Math.max(Math.abs(ns), step) >= scale,
  ) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9));
  return ns === 0 ? "0" : `${(ns / scale).toFixed(digits)} ${unit}`;
}

function formatBytes(bytes) {
  let value = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024 || unit === "GiB") return `${+value.toPrecision(3)} ${unit}`;
    value /= 1024;
  }
  return "";
}

function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= value * 0.999999);
}

/** Columns to arrays of absolute times; each row knows which of the events are its own. */
function decoded(data) {
  const { kind, name, gap, length, bytes, turn, what, merged } = data.events;
  const count = kind.length;
  const start = new Float64Array(count);
  const row = new Int32Array(count);
  const rows = [];
  let index = 0;
  for (const [number, head] of data.rows.entries()) {
    const [first, bars] = [index, data.counts[number]];
    let at = 0;
    for (; index < first + bars; index++) {
      start[index] = at + gap[index];
      at = start[index] + length[index];
      row[index] = rows.length;
    }
    rows.push({ ...head, count: bars, first, last: index });
  }
  const partners = new Map();
  for (let k = 0; k < data.messages.length; k += 2) {
    const [sent, received] = [data.messages[k], data.messages[k + 1]];
    for (const [one, other] of [[sent, received], [received, sent]]) {
      if (!partners.has(one)) partners.set(one, []);
      partners.get(one).push(other);
    }
  }
  return { count, kind, name, start, length, bytes, turn, what, merged, row, rows, partners };
}

// The look of a kind: never its colour alone, also its height and pattern.
const STYLES = {
  task: { height: 1, pattern: "solid" },
  send: { height: 0.6, pattern: "solid", mark: "▲" },
  post: { height: 0.35, pattern: "solid" },
  wait: { height: 0.6, pattern: "hatched" },
  copy: { height: 0.6, pattern: "dotted" },
  barrier: { height: 0.85, pattern: "crossed" },
};

class Timeline {
  constructor(host, data, say, number) {
    this.host = host;
    this.number = number;
    this.sayElsewhere = say;
    this.build();
    this.observe();
    this.update(data);
  }

  update(data) {
    this.data = data;
    this.events = decoded(data);
    this.hidden = new Set();
    this.query = "";
    this.selected = this.hovered = -1;
    this.fullFrom = Math.min(0, ...this.events.rows.map((row) => this.beginOf(row)));
    this.fullTo = Math.max(data.span, 1, ...this.events.rows.map((row) => this.endOf(row)));
    [this.from, this.to] = [0, Math.max(data.span, 1)];
    this.root.setAttribute("aria-label", `Timeline. ${data.summary}`);
    this.buildControls();
    this.buildGutter();
    this.buildFacts();
    this.describe(-1);
    this.resize();
  }

  beginOf(row) {
    return row.count ? this.events.start[row.first] : 0;
  }

  endOf(row) {
    const last = row.last - 1;
    return row.count ? this.events.start[last] + this.events.length[last] : 0;
  }

  dispose() {
    cancelAnimationFrame(this.frame);
    this.resizing.disconnect();
    this.theming.disconnect();
    this.dark.removeEventListener("change", this.redraw);
    this.root.remove();
  }

  // Content --------------------------------------------------------------------------------------

  build() {
    this.root = element("div", "avial-timeline", "", { role: "group" });
    this.controls = element("div", "avial-timeline-controls");
    this.taskBar = element("div", "avial-timeline-tasks", "", { role: "group", "aria-label": "tasks" });
    this.frameBox = element("div", "avial-timeline-frame");
    const hint = element("p", "avial-timeline-hint", HINT, {
      id: `avial-timeline-hint-${this.number}`,
    });
    // Lumino's shortcuts (j, k, d d …) are not meant while keys are for the chart.
    this.chart = element("div", "avial-timeline-chart", "", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": "Timeline chart",
      "aria-describedby": hint.id,
      "data-lm-suppress-shortcuts": "true",
    });
    this.axis = element("canvas", "avial-timeline-axis", "", { "aria-hidden": "true" });
    this.plot = element("canvas", "avial-timeline-plot", "", { "aria-hidden": "true" });
    this.gutter = element("div", "avial-timeline-gutter");
    this.tip = element("div", "avial-timeline-tip", "", { "aria-hidden": "true" });
    this.tip.hidden = true;
    this.detail = element("p", "avial-timeline-detail", "", { role: "status" });
    this.facts = element("div", "avial-timeline-facts");
    this.notes = element("div", "avial-timeline-notes");
    this.chart.append(this.axis, this.plot, this.gutter);
    this.frameBox.append(this.chart, this.tip);
    this.root.append(this.controls, this.taskBar, this.frameBox, this.detail, this.notes, hint, this.facts);
    this.host.append(this.root);
    this.listen();
  }

  buildControls() {
    this.controls.replaceChildren();
    const button = (text, label, act) => {
      const made = element("button", "", text, { type: "button", "aria-label": label, title: label });
      made.addEventListener("click", act);
      this.controls.append(made);
    };
    button("+", "Zoom in", () => this.zoom(0.5));
    button("−", "Zoom out", () => this.zoom(2));
    button("all", "Show the whole run", () => this.show(0, this.data.span));
    button("SVG", "Save the picture as an SVG file", () => this.save("svg"));
    button("PNG", "Save the picture as a PNG file", () => this.save("png"));
    this.switches = {};
    const check = (name, words, on, act) => {
      const label = element("label", "avial-timeline-check");
      const box = element("input", "", "", { type: "checkbox" });
      box.checked = on;
      box.addEventListener("change", () => (act?.(box.checked), this.redraw()));
      label.append(box, ...(STYLES[name] ? [this.swatch(name)] : []), document.createTextNode(words));
      this.controls.append(label);
      this.switches[name] = box;
    };
    const there = new Set(this.events.kind);
    this.data.kinds.forEach((kind, k) => {
      if (there.has(k))
        check(kind, this.data.words[k], true, (on) =>
          on ? this.hidden.delete(k) : this.hidden.add(k),
        );
    });
    if (this.data.messages.length) check("arrows", "messages", false);
    if (this.data.path.length) check("path", "critical path", false);
    if (this.fullFrom < 0)
      check("around", "before and after the run", false, (on) =>
        (this.resize(), on ? this.show(this.fullFrom, this.fullTo) : this.show(0, this.data.span)),
      );
    const search = element("input", "avial-timeline-search", "", {
      type: "search",
      placeholder: "find a task …",
      "aria-label": "Find events by name",
    });
    search.addEventListener("input", () => {
      this.query = search.value.trim().toLowerCase();
      this.tell(this.query ? `${this.matches().length} found` : "");
      this.redraw();
    });
    search.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") this.next(1, this.matches());
    });
    search.setAttribute("data-lm-suppress-shortcuts", "true");
    this.controls.append(search);
    this.buildTasks();
  }

  /** The tasks by their colours; a click selects one's first run, as large as can be. */
  buildTasks() {
    this.taskBar.replaceChildren();
    const names = Object.keys(this.data.tasks ?? {});
    for (const name of names.slice(0, MOST_NAMED)) {
      const made = element("button", "avial-timeline-task", "", { type: "button", title: `zoom to ${name}` });
      const box = element("span", "avial-timeline-colour", "", { "aria-hidden": "true" });
      box.style.background = this.data.tasks[name][0];
      made.append(box, document.createTextNode(name));
      made.addEventListener("click", () => this.zoomTo(name));
      this.taskBar.append(made);
    }
    if (names.length > MOST_NAMED) this.taskBar.append(element("span", "", `and ${names.length - MOST_NAMED} more`));
  }

  zoomTo(name) {
    const task = this.data.kinds.indexOf("task");
    for (let k = 0; k < this.events.count; k++) {
      if (this.events.kind[k] !== task || this.nameOf(k) !== name || !this.visible(k)) continue;
      const [start, length] = [this.events.start[k], this.events.length[k]];
      this.show(start - length, start + 2 * length);
      this.select(k);
      return;
    }
  }

  swatch(kind) {
    const canvas = element("canvas", "avial-timeline-swatch", "", { "aria-hidden": "true" });
    canvas.dataset.kind = kind;
    return canvas;
  }

  buildGutter() {
    this.gutter.replaceChildren();
    let before = null;
    for (const row of this.events.rows) {
      const head = element("div", "avial-timeline-head");
      const name = row.around
        ? "before and after"
        : row.predicted
          ? `${row.device || "rank " + row.rank}, predicted`
          : row.rank === before
            ? row.device
            : `rank ${row.rank}${row.device ? " · " + row.device : ""}`;
      head.append(element("span", "avial-timeline-name", name + this.data.devices[row.kind].after_name));
      if (row.rank !== before && !row.around && !row.predicted) head.append(...this.share(row.rank));
      this.gutter.append(head);
      before = row.rank;
    }
  }

  share(rank) {
    const found = this.data.shares.find((share) => share.rank === rank);
    if (!found) return [];
    const words = this.data.share_names
      .map((name, k) => `${name} ${found.parts[k]} %`)
      .filter((_, k) => found.parts[k] > 0)
      .join(", ");
    const bar = element("span", "avial-timeline-share", "", {
      role: "img",
      "aria-label": words,
      title: words,
    });
    found.parts.forEach((part, k) => {
      const piece = element("span", `avial-timeline-part avial-timeline-${this.data.share_names[k]}`);
      piece.style.width = `${part}%`;
      bar.append(piece);
    });
    const said = element("span", "avial-timeline-percent", `${found.parts[0]} %`);
    said.title = words;
    return [bar, said];
  }

  buildFacts() {
    this.facts.replaceChildren();
    this.notes.replaceChildren(...this.data.notes.map((note) => element("p", "", note)));
    const details = element("details");
    details.append(element("summary", "", "as tables"));
    for (const table of this.data.tables) details.append(this.table(table));
    this.facts.append(details);
  }

  table({ title, head, rows, numbers, note }) {
    const box = element("div", "avial-timeline-table", "", {
      tabindex: "0",
      role: "region",
      "aria-label": title,
    });
    const table = element("table");
    table.append(element("caption", "", title));
    const line = (cells, tag) => {
      const row = element("tr");
      cells.forEach((cell, k) => {
        const made = element(tag, numbers.includes(head[k]) ? "avial-timeline-number" : "", cell);
        if (tag === "th") made.scope = "col";
        row.append(made);
      });
      return row;
    };
    const [thead, tbody] = [element("thead"), element("tbody")];
    thead.append(line(head, "th"));
    tbody.append(...rows.map((row) => line(row, "td")));
    table.append(thead, tbody);
    box.append(table);
    if (note) box.append(element("p", "", note));
    return box;
  }

  // What is seen and asked -----------------------------------------------------------------------

  get width() {
    return this.plot.clientWidth - GUTTER;
  }

  x(time) {
    return GUTTER + ((time - this.from) / (this.to - this.from)) * this.width;
  }

  timeAt(x) {
    return this.from + ((x - GUTTER) / this.width) * (this.to - this.from);
  }

  show(from, to) {
    const least = 20; // nanoseconds: closer there is nothing to see
    const whole = [Math.min(this.fullFrom, 0), this.fullTo];
    const span = Math.min(Math.max(to - from, least), whole[1] - whole[0]);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, whole[0]), whole[1] - span);
    this.to = this.from + span;
    this.redraw();
  }

  /** By default around what is selected, where that is in sight. */
  zoom(factor, at = this.middle()) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  middle() {
    const { start, length } = this.events;
    const here = this.selected < 0 ? NaN : start[this.selected] + length[this.selected] / 2;
    return here >= this.from && here <= this.to ? here : (this.from + this.to) / 2;
  }

  pan(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  visible(index) {
    const row = this.events.rows[this.events.row[index]];
    return !this.hidden.has(this.events.kind[index]) && (!row.around || this.showsAround());
  }

  showsAround() {
    return this.switches.around?.checked ?? false;
  }

  nameOf(index) {
    return this.data.names[this.events.name[index]];
  }

  matches() {
    const found = [];
    for (let k = 0; k < this.events.count; k++) {
      if (this.visible(k) && this.nameOf(k).toLowerCase().includes(this.query)) found.push(k);
    }
    return found;
  }

  rowAt(y) {
    return this.events.rows[this.tops.findIndex((top) => top <= y && y < top + ROW)];
  }

  /** The event at a place of the plot, or near it where it is short; -1 for none. */
  at(x, y) {
    const row = this.rowAt(y);
    if (!row || x < GUTTER) return -1;
    const time = this.timeAt(x);
    const reach = (4 / this.width) * (this.to - this.from);
    let [best, distance] = [-1, reach];
    for (let k = this.firstAfter(row, time - reach); k < row.last; k++) {
      const [start, end] = [this.events.start[k], this.events.start[k] + this.events.length[k]];
      if (start > time + reach) break;
      if (!this.visible(k)) continue;
      const away = Math.max(start - time, time - end, 0);
      if (away < distance) [best, distance] = [k, away];
    }
    return best;
  }

  /** The first event of the row that ends after `time`: rows are in order and do not overlap. */
  firstAfter(row, time) {
    let [low, high] = [row.first, row.last];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.events.start[middle] + this.events.length[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  words(index) {
    const { events, data } = this;
    const row = events.rows[events.row[index]];
    const merged = events.merged?.[index] ?? 1;
    const kind = data.words[events.kind[index]];
    const lines = [
      merged > 1 ? `${merged} events (${kind})${this.nameOf(index) ? ": " + this.nameOf(index) : ""}`
                 : this.nameOf(index),
      `${kind} on rank ${row.rank}${row.device && !row.around ? ", " + row.device : ""}`,
      `${formatTime(events.length[index])} from ${formatTime(events.start[index])}`,
    ];
    const turn = events.turn?.[index] ?? 0;
    if (turn) lines.push(`execution ${turn} of this phase`);
    const bytes = events.bytes?.[index] ?? 0;
    const what = data.names[events.what?.[index] ?? 0];
    if (bytes || what) lines.push([what, bytes ? formatBytes(bytes) : ""].filter(Boolean).join(", "));
    for (const other of (events.partners.get(index) ?? []).slice(0, 4)) {
      const there = events.rows[events.row[other]];
      lines.push(`with rank ${there.rank} at ${formatTime(events.start[other])}`);
    }
    if (row.predicted) lines.push("predicted, not measured");
    if (row.around) lines.push("not part of the run's time");
    return lines;
  }

  describe(index) {
    this.detail.textContent = index < 0 ? "Nothing is selected." : this.words(index).join(" · ");
  }

  tell(words) {
    if (words) this.detail.textContent = words;
    if (words) this.sayElsewhere?.(words);
  }

  select(index) {
    this.selected = index;
    this.describe(index);
    if (index >= 0) {
      const [start, length] = [this.events.start[index], this.events.length[index]];
      if (start + length < this.from || start > this.to) {
        const half = (this.to - this.from) / 2;
        this.show(start + length / 2 - half, start + length / 2 + half);
      }
      this.sayElsewhere?.(this.detail.textContent);
    }
    this.redraw();
  }

  next(step, among) {
    const place = among.indexOf(this.selected);
    const to = place < 0 ? (step > 0 ? 0 : among.length - 1) : place + step;
    if (among[to] !== undefined) this.select(among[to]);
  }

  ofRow(number) {
    const row = this.events.rows[number];
    const found = [];
    for (let k = row?.first; k < row?.last; k++) if (this.visible(k)) found.push(k);
    return found;
  }

  otherRow(step) {
    const here = this.selected < 0 ? (step > 0 ? -1 : 0) : this.events.row[this.selected];
    const time = this.selected < 0 ? this.from : this.events.start[this.selected];
    for (let row = here + step; row >= 0 && row < this.events.rows.length; row += step) {
      const found = this.ofRow(row);
      if (!found.length) continue;
      this.select(found.find((k) => this.events.start[k] + this.events.length[k] >= time) ?? found.at(-1));
      return;
    }
  }

  listen() {
    const keys = {
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      ArrowUp: () => this.zoom(0.5),
      ArrowDown: () => this.zoom(2),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.show(0, this.data.span),
      Home: () => this.show(0, this.data.span),
      n: () => this.next(1, this.ofRow(this.selected < 0 ? 0 : this.events.row[this.selected])),
      p: () => this.next(-1, this.ofRow(this.selected < 0 ? 0 : this.events.row[this.selected])),
      j: () => this.otherRow(1),
      k: () => this.otherRow(-1),
      Escape: () => this.select(-1),
      Enter: () => {
        if (this.selected < 0) return;
        const [start, length] = [this.events.start[this.selected], this.events.length[this.selected]];
        this.show(start - length, start + 2 * length);
      },
    };
    this.chart.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      act();
    });
    this.chart.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.plot.addEventListener("pointerdown", (event) => this.press(event));
    this.plot.addEventListener("pointermove", (event) => this.move(event));
    this.plot.addEventListener("pointerup", (event) => this.release(event));
    this.plot.addEventListener("pointercancel", () => (this.drag = null));
    this.plot.addEventListener("pointerleave", () => this.hover(-1));
    this.plot.addEventListener("dblclick", (event) => this.zoom(0.25, this.timeAt(event.offsetX)));
  }

  /** The page goes on scrolling until the chart has been asked for the wheel, by focus or Ctrl. */
  wheel(event) {
    const focused = this.chart.contains(document.activeElement);
    if (!focused && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) this.pan(sideways / 600);
    else this.zoom(2 ** (Math.max(-200, Math.min(200, event.deltaY)) / 200), this.timeAt(this.xOf(event)));
  }

  xOf(event) {
    return event.clientX - this.plot.getBoundingClientRect().left;
  }

  press(event) {
    this.drag = { x: event.offsetX, from: this.from, to: this.to, moved: false };
    this.plot.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.drag) {
      this.hover(this.at(event.offsetX, event.offsetY), event);
      return;
    }
    const by = event.offsetX - this.drag.x;
    if (Math.abs(by) > 3) this.drag.moved = true;
    if (!this.drag.moved) return;
    this.hover(-1);
    const time = (by / this.width) * (this.drag.to - this.drag.from);
    this.show(this.drag.from - time, this.drag.to - time);
  }

  release(event) {
    if (this.drag && !this.drag.moved) this.select(this.at(event.offsetX, event.offsetY));
    this.drag = null;
  }

  hover(index, event) {
    if (index !== this.hovered) {
      this.hovered = index;
      this.tip.replaceChildren(...(index < 0 ? [] : this.words(index).map((line) => element("div", "", line))));
      this.tip.hidden = index < 0;
      this.redraw();
    }
    if (index < 0 || !event) return;
    const box = this.frameBox.getBoundingClientRect();
    const left = event.clientX - box.left + 14;
    const fits = left + this.tip.offsetWidth < box.width;
    this.tip.style.left = `${fits ? left : Math.max(0, left - 28 - this.tip.offsetWidth)}px`;
    this.tip.style.top = `${event.clientY - box.top + 14}px`;
  }

  observe() {
    this.redraw = () => {
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.draw());
    };
    this.resizing = new ResizeObserver(() => this.resize());
    this.resizing.observe(this.chart);
    // JupyterLab changes its theme by attributes of the body; a page by the system's preference.
    this.theming = new MutationObserver(this.redraw);
    this.theming.observe(document.body, { attributes: true });
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", this.redraw);
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    const width = this.chart.clientWidth;
    let total = 0;
    this.tops = this.events.rows.map((row, number) => {
      const shown = !row.around || this.showsAround();
      this.gutter.children[number].hidden = !shown;
      total += shown ? ROW : 0;
      return shown ? total - ROW : Infinity;
    });
    for (const [canvas, height] of [[this.axis, AXIS], [this.plot, total]]) {
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    this.redraw();
  }

  // Drawing --------------------------------------------------------------------------------------

  colours() {
    const style = getComputedStyle(this.root);
    const of = (name) => style.getPropertyValue(`--avial-timeline-${name}`).trim();
    const names = ["ink", "quiet", "line", "band", "paper", "compute", "send", "post", "wait", "copy",
      "barrier", "path", "focus"];
    return Object.fromEntries(names.map((name) => [name, of(name)]));
  }

  draw() {
    if (!this.plot.clientWidth) return;
    this.look = this.colours();
    [this.chart.dataset.from, this.chart.dataset.to] = [this.from, this.to]; // for whoever looks
    const axis = this.axis.getContext("2d");
    axis.clearRect(0, 0, this.axis.clientWidth, AXIS);
    this.drawAxis(axis);
    const context = this.plot.getContext("2d");
    context.clearRect(0, 0, this.plot.clientWidth, this.plot.clientHeight);
    this.drawPlot(context);
    for (const canvas of this.controls.querySelectorAll("canvas")) this.drawSwatch(canvas);
  }

  drawPlot(context) {
    this.drawGrid(context);
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, this.width, this.plot.clientHeight);
    context.clip();
    this.events.rows.forEach((row, number) => this.drawRow(context, row, number));
    if (this.switches.path?.checked) this.drawPath(context);
    this.drawArrows(context);
    context.restore();
  }

  /** What is shown as a file: names, axis and bars as they stand. */
  async save(form) {
    this.draw();
    const [width, height] = [this.plot.clientWidth, AXIS + this.plot.clientHeight];
    let blob;
    if (form === "svg") {
      const drawing = new SvgContext();
      this.drawPicture(drawing, width, height);
      blob = new Blob([drawing.picture(width, height)], { type: "image/svg+xml" });
    } else {
      const canvas = element("canvas");
      const scale = this.plot.width / width;
      [canvas.width, canvas.height] = [this.plot.width, Math.round(height * scale)];
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      this.drawPicture(context, width, height);
      blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    }
    const name = { href: URL.createObjectURL(blob), download: `timeline.${form}` };
    const link = element("a", "", "", name);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  drawPicture(context, width, height) {
    context.fillStyle = this.look.paper;
    context.fillRect(0, 0, width, height);
    this.drawAxis(context);
    context.translate(0, AXIS);
    this.drawPlot(context);
    context.fillStyle = this.look.ink;
    context.font = "11px sans-serif";
    context.textAlign = "left";
    this.tops.forEach((top, number) => {
      if (top === Infinity) return;
      const name = this.gutter.children[number].querySelector(".avial-timeline-name");
      context.fillText(name.textContent, 6, top + ROW / 2 + 4, GUTTER - 12);
    });
  }

  ticks() {
    const step = roundStep((this.to - this.from) / Math.max(2, this.width / 110));
    const found = [];
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) found.push(time);
    return [found, step];
  }

  drawAxis(context) {
    context.fillStyle = this.look.quiet;
    context.font = "11px sans-serif";
    context.textAlign = "right";
    context.fillText(this.data.share_names[0], GUTTER - 6, 15);
    context.textAlign = "center";
    const [times, step] = this.ticks();
    for (const time of times) {
      const x = Math.min(Math.max(this.x(time), GUTTER + 14), this.axis.clientWidth - 26);
      context.fillText(formatTick(time, step), x, 15);
    }
  }

  drawGrid(context) {
    for (let top = 0; top < this.plot.clientHeight; top += 2 * ROW) {
      context.fillStyle = this.look.band;
      context.fillRect(0, top, this.plot.clientWidth, ROW);
    }
    context.strokeStyle = this.look.line;
    context.beginPath();
    for (const time of this.ticks()[0]) {
      context.moveTo(Math.round(this.x(time)) + 0.5, 0);
      context.lineTo(Math.round(this.x(time)) + 0.5, this.plot.clientHeight);
    }
    context.stroke();
  }

  drawRow(context, row, number) {
    if (row.around && !this.showsAround()) return;
    let drawn = -Infinity; // the pixel and kind of the last short bar: one is enough there
    let drawnKind = -1;
    for (let k = this.firstAfter(row, this.from); k < row.last; k++) {
      if (this.events.start[k] > this.to) break;
      if (!this.visible(k)) continue;
      const x = Math.min(this.x(this.events.start[k]), this.plot.clientWidth - 1.5);
      const width = (this.events.length[k] / (this.to - this.from)) * this.width;
      const kind = this.events.kind[k];
      const special = k === this.selected || k === this.hovered;
      if (width < 1 && kind === drawnKind && x - drawn < 1 && !special && !this.query) continue;
      if (width < 1) [drawn, drawnKind] = [x, kind];
      this.drawBar(context, k, x, Math.max(width, 1), this.tops[number], row);
    }
  }

  drawBar(context, k, x, width, top, row) {
    const kind = this.data.kinds[this.events.kind[k]];
    const style = STYLES[kind];
    const height = BAR * style.height;
    const y = top + (ROW - height) / 2;
    const device = this.data.devices[row.kind];
    // A task has its own colour; how its device looks is told by dashes and the row's name.
    const [own, ownInk] = (kind === "task" && this.data.tasks?.[this.nameOf(k)]) || [device.colour, device.ink];
    const fill = kind === "task" ? own : this.look[kind];
    const faded = this.query && !this.nameOf(k).toLowerCase().includes(this.query);
    context.globalAlpha = faded ? 0.2 : row.predicted ? 0.6 : 1;
    // Neighbours are told apart by a line of paper between them.
    this.fill(context, style.pattern, fill, x, y, kind === "task" && width > 3 ? width - 1 : width, height);
    if (kind === "task" && (device.dashed || row.predicted) && width > 6) {
      context.setLineDash([5, 3]);
      this.outline(context, this.look.paper, x + 1.5, y + 1.5, width - 3, height - 3);
      context.setLineDash([]);
    }
    if (k === this.selected || k === this.hovered) {
      this.outline(context, this.look.ink, x - 1, y - 1, Math.max(width, 2) + 2, height + 2, 2);
    }
    const ink = kind === "task" ? ownInk : this.look.ink;
    const solid = style.pattern === "solid" && kind !== "task";
    if (kind === "task" && width > 6) {
      context.fillStyle = this.look.paper; // where it begins
      context.fillRect(x, y, 1, height);
    }
    if (width > 30) this.label(context, this.barWords(k, kind), x, y, width, height, solid ? "#000" : ink);
    context.globalAlpha = 1;
  }

  barWords(k, kind) {
    const merged = this.events.merged?.[k] ?? 1;
    const mark = STYLES[kind].mark ? `${STYLES[kind].mark} ` : "";
    return mark + (merged > 1 ? `${this.nameOf(k)} ×${merged}`.trim() : this.nameOf(k));
  }

  label(context, words, x, y, width, height, ink) {
    const from = Math.max(x, GUTTER);
    const room = Math.min(x + width, this.plot.clientWidth) - from - 8;
    if (room < 16 || height < 12) return;
    context.save();
    context.beginPath();
    context.rect(from, y, room + 6, height);
    context.clip();
    context.font = "11px sans-serif";
    context.textAlign = "left";
    if (ink === this.look.ink) {
      context.strokeStyle = this.look.paper; // over a pattern
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeText(words, from + 4, y + height / 2 + 4);
    }
    context.fillStyle = ink;
    context.fillText(words, from + 4, y + height / 2 + 4);
    context.restore();
  }

  fill(context, pattern, colour, x, y, width, height) {
    context.fillStyle = colour;
    context.strokeStyle = colour;
    if (pattern === "solid" || width < 4) {
      context.fillRect(x, y, width, height);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.lineWidth = 1;
    context.beginPath();
    const [left, right] = [Math.max(x, GUTTER) - height, Math.min(x + width, this.plot.clientWidth)];
    for (let at = left - (left % 6); at < right + height; at += 6) {
      if (pattern === "dotted") for (let down = y + 2; down < y + height; down += 5) context.rect(at, down, 3, 2);
      else {
        context.moveTo(at, y + height);
        context.lineTo(at + height, y);
        if (pattern === "crossed") {
          context.moveTo(at, y);
          context.lineTo(at + height, y + height);
        }
      }
    }
    if (pattern === "dotted") context.fill();
    else context.stroke();
    context.restore();
    this.outline(context, colour, x + 0.5, y + 0.5, width - 1, height - 1);
  }

  outline(context, colour, x, y, width, height, thick = 1) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(x, y, Math.max(0, width), Math.max(0, height));
    context.lineWidth = 1;
  }

  drawSwatch(canvas) {
    const scale = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [22 * scale, 14 * scale];
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const { kind } = canvas.dataset;
    const height = 14 * STYLES[kind].height;
    const colour = kind === "task" ? this.look.compute : this.look[kind];
    context.save();
    context.translate(-GUTTER, 0); // patterns begin at the gutter
    this.fill(context, STYLES[kind].pattern, colour, GUTTER, (14 - height) / 2, 22, height);
    context.restore();
  }

  /** The row of a rank's measured events. */
  rowOf(rank) {
    return this.events.rows.findIndex((row) => row.rank === rank && !row.around && !row.predicted);
  }

  drawPath(context) {
    context.strokeStyle = this.look.path;
    context.lineWidth = 3;
    let before = null;
    for (const [rank, start, length] of this.data.path) {
      const row = this.rowOf(rank);
      if (row < 0) continue;
      const y = this.tops[row] + ROW - 3;
      context.beginPath();
      if (before !== null && before !== y) {
        context.moveTo(this.x(start), before);
        context.lineTo(this.x(start), y);
      }
      context.moveTo(this.x(start), y);
      context.lineTo(Math.max(this.x(start + length), this.x(start) + 1), y);
      context.stroke();
      before = y;
    }
    context.lineWidth = 1;
  }

  drawArrows(context) {
    const { messages } = this.data;
    const chosen = [];
    const all = this.switches.arrows?.checked;
    for (let k = 0; k < messages.length && chosen.length < MOST_ARROWS; k += 2) {
      const [sent, received] = [messages[k], messages[k + 1]];
      const asked = [this.selected, this.hovered].some((e) => e === sent || e === received);
      const end = this.events.start[received] + this.events.length[received];
      const seen = end >= this.from && this.events.start[sent] <= this.to;
      if (asked || (all && seen)) chosen.push([sent, received]);
    }
    for (const [sent, received] of chosen) this.drawArrow(context, sent, received);
  }

  drawArrow(context, sent, received) {
    const { start, length, row } = this.events;
    const down = row[received] > row[sent];
    const [x1, x2] = [this.x(start[sent]), this.x(start[received] + length[received])];
    const y1 = this.tops[row[sent]] + (down ? ROW - 8 : 8);
    const y2 = this.tops[row[received]] + (down ? 8 : ROW - 8);
    const bend = Math.max(8, Math.min(60, Math.abs(x2 - x1) / 2));
    for (const [colour, width] of [[this.look.paper, 4], [this.look.ink, 1.5]]) {
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend / 2, y1, x2 - bend, y2 - (down ? 14 : -14), x2, y2);
      context.stroke();
    }
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - 7, y2 + (down ? -7 : 7));
    context.lineTo(x2 + 1, y2 + (down ? -8 : 8));
    context.fill();
    context.lineWidth = 1;
  }
}

// As SVG -----------------------------------------------------------------------------------------

/** As much of a canvas's context as the timeline draws with; every stroke becomes an element. */
class SvgContext {
  constructor() {
    this.elements = [];
    this.clips = 0;
    this.path = "";
    this.state = {
      fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, lineJoin: "miter", globalAlpha: 1,
      font: "11px sans-serif", textAlign: "left", dash: [], dx: 0, dy: 0, open: 0,
    };
    this.stack = [];
    for (const name of Object.keys(this.state)) {
      Object.defineProperty(this, name, {
        get: () => this.state[name],
        set: (value) => (this.state[name] = value),
      });
    }
  }

  picture(width, height) {
    const box = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
    const all = this.elements.join("\n");
    return `<svg xmlns="http://www.w3.org/2000/svg" ${box}>\n${all}\n</svg>\n`;
  }

  save() {
    this.stack.push(this.state);
    this.state = { ...this.state, open: 0 };
  }

  restore() {
    this.elements.push("</g>".repeat(this.state.open));
    this.state = this.stack.pop();
  }

  clip() {
    const id = `clip${++this.clips}`;
    this.elements.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.elements.push(`<g clip-path="url(#${id})">`);
    this.state.open++;
  }

  translate(x, y) {
    this.state.dx += x;
    this.state.dy += y;
  }

  at(x, y) {
    return `${round(x + this.state.dx)} ${round(y + this.state.dy)}`;
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${this.at(x, y)}`;
  }

  lineTo(x, y) {
    this.path += `L${this.at(x, y)}`;
  }

  bezierCurveTo(x1, y1, x2, y2, x, y) {
    this.path += `C${this.at(x1, y1)} ${this.at(x2, y2)} ${this.at(x, y)}`;
  }

  rect(x, y, width, height) {
    this.path += `M${this.at(x, y)}h${round(width)}v${round(height)}h${round(-width)}Z`;
  }

  fill() {
    this.add(`<path d="${this.path}" ${this.filled()}/>`);
  }

  stroke() {
    this.add(`<path d="${this.path}" ${this.stroked()}/>`);
  }

  fillRect(x, y, width, height) {
    this.add(`<path d="${this.box(x, y, width, height)}" ${this.filled()}/>`);
  }

  strokeRect(x, y, width, height) {
    this.add(`<path d="${this.box(x, y, width, height)}" ${this.stroked()}/>`);
  }

  setLineDash(dash) {
    this.state.dash = dash;
  }

  /** Where a width is given and the words are too long, they are drawn closer together. */
  fillText(words, x, y, most = Infinity) {
    const long = words.length * 6 > most ? ` textLength="${most}" lengthAdjust="spacingAndGlyphs"` : "";
    this.write(words, x, y, `${this.filled()}${long}`);
  }

  strokeText(words, x, y) {
    this.write(words, x, y, this.stroked());
  }

  write(words, x, y, how) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.state.textAlign];
    const [left, top] = this.at(x, y).split(" ");
    const font = `style="font:${escaped(this.state.font)}" text-anchor="${anchor}"`;
    this.add(`<text x="${left}" y="${top}" ${font} ${how}>${escaped(words)}</text>`);
  }

  box(x, y, width, height) {
    return `M${this.at(x, y)}h${round(width)}v${round(height)}h${round(-width)}Z`;
  }

  filled() {
    return `fill="${escaped(this.state.fillStyle)}"${this.faint()}`;
  }

  stroked() {
    const { strokeStyle, lineWidth, lineJoin, dash } = this.state;
    const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    const line = `stroke-width="${lineWidth}" stroke-linejoin="${lineJoin}"${dashes}`;
    return `fill="none" stroke="${escaped(strokeStyle)}" ${line}${this.faint()}`;
  }

  faint() {
    return this.state.globalAlpha === 1 ? "" : ` opacity="${this.state.globalAlpha}"`;
  }

  add(element) {
    this.elements.push(element);
  }
}

function round(number) {
  return Math.round(number * 100) / 100;
}

function escaped(text) {
  return String(text)
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\ufffd") // what XML has no place for
    .replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
