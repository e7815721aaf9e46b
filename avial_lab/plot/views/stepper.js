// The stage stepper: a program's lowering, one step at a time, two steps as a diff, and which line
// of the cell became which lines of a stage. Data: plot/views/stepper.py. No dependencies.

const ROW = 18; // px, as in stepper.css
const COLUMNS = 500; // of a line, unless whole lines are asked for
const LARGE = 1_000_000; // bytes of all stages together
const CONTEXT = 3; // unchanged lines kept around a change
let mounts = 0;
let texts = 0;

// Texts ------------------------------------------------------------------------------------------

/** Every distinct line has one number, so that comparing lines is comparing numbers. */
const ids = new Map();
function idOf(text) {
  let id = ids.get(text);
  if (id === undefined) ids.set(text, (id = ids.size));
  return id;
}

/** The lines of a text in a book `{lines, inks, ink}`: `[first, count, …]` -> `[{text, ink, id}]`. */
function unpack(book, spans) {
  book.made ??= [];
  const lines = [];
  for (let k = 0; k < spans.length; k += 2)
    for (let n = spans[k]; n < spans[k] + spans[k + 1]; n++)
      lines.push((book.made[n] ??= { text: book.lines[n], ink: book.inks[book.ink[n]], id: idOf(book.lines[n]) }));
  return lines;
}

/** What lines are compared by: their numbers, or those of the line without what is ignored. */
function keysOf(lines, { names, indent }) {
  if (!names && !indent) return lines.map((line) => line.id);
  const kept = names ? (indent ? "both" : "names") : "indent";
  return lines.map((line) => {
    if (line[kept] !== undefined) return line[kept];
    let text = line.text;
    if (names) text = text.replace(/%[\w.$-]+(?:[:#]\d+)?|\^\w+|(?<=^|\s)\d+:|![0-9]+|#\d+/g, "%_").replace(/\s*[;#] preds? =.*|\s*\/\/ \d* ?preds?:.*/g, "");
    if (indent) text = text.trim().replace(/\s+/g, " ");
    return (line[kept] = idOf(text));
  });
}

// Differences ------------------------------------------------------------------------------------

/**
 * Where two lists of numbers differ: `[[aFrom, aTo, bFrom, bTo], …]`, in order, half-open; all
 * between them is equal. Lines that occur once in both are matched first (patience), the gaps
 * exactly (Myers) while they are near, at their rarest common line where they are not; what would
 * take too long counts as replaced. Right for every input, shortest for near ones.
 */
export function diffLines(a, b, work = 3e6) {
  const hunks = [];
  const emit = (a0, a1, b0, b1) => {
    const last = hunks[hunks.length - 1];
    if (last && last[1] === a0 && last[3] === b0) [last[1], last[3]] = [a1, b1];
    else hunks.push([a0, a1, b0, b1]);
  };
  const todo = [[0, a.length, 0, b.length]];
  while (todo.length) {
    let [a0, a1, b0, b1] = todo.pop();
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) a0++, b0++;
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) a1--, b1--;
    if (a0 === a1 && b0 === b1) continue;
    work -= a1 - a0 + b1 - b0;
    if (a0 === a1 || b0 === b1 || work < 0) {
      emit(a0, a1, b0, b1);
      continue;
    }
    let matched = anchors(a, a0, a1, b, b0, b1);
    if (!matched.length) {
      const near = shortest(a, a0, a1, b, b0, b1, 128);
      work -= near.work;
      if (near.hunks) {
        for (const hunk of near.hunks) emit(...hunk);
        continue;
      }
      matched = rarest(a, a0, a1, b, b0, b1);
    }
    if (!matched.length) {
      emit(a0, a1, b0, b1);
      continue;
    }
    // Last gap first: the stack then gives them back in order.
    let [aEnd, bEnd] = [a1, b1];
    for (let k = matched.length - 1; k >= 0; k--) {
      const [i, j] = matched[k];
      if (i + 1 < aEnd || j + 1 < bEnd) todo.push([i + 1, aEnd, j + 1, bEnd]);
      [aEnd, bEnd] = [i, j];
    }
    if (a0 < aEnd || b0 < bEnd) todo.push([a0, aEnd, b0, bEnd]);
  }
  return hunks;
}

/** Pairs of lines that occur once in each, as many as keep their order. */
function anchors(a, a0, a1, b, b0, b1) {
  const once = (list, from, to) => {
    const places = new Map();
    for (let k = from; k < to; k++) places.set(list[k], places.has(list[k]) ? -1 : k);
    return places;
  };
  const inB = once(b, b0, b1);
  const pairs = [];
  for (const [id, i] of once(a, a0, a1)) {
    const j = i < 0 ? undefined : inB.get(id);
    if (j >= 0) pairs.push([i, j]);
  }
  pairs.sort((p, q) => p[0] - q[0]);
  return increasing(pairs);
}

/** The longest run of pairs whose second numbers increase. */
function increasing(pairs) {
  const tops = []; // tops[k]: the pair with the least second number that ends a run of k + 1
  const back = new Array(pairs.length);
  pairs.forEach(([, j], n) => {
    let low = 0;
    let high = tops.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[tops[middle]][1] < j) low = middle + 1;
      else high = middle;
    }
    back[n] = low ? tops[low - 1] : -1;
    tops[low] = n;
  });
  const found = [];
  for (let n = tops.length ? tops[tops.length - 1] : -1; n >= 0; n = back[n]) found.push(pairs[n]);
  return found.reverse();
}

/** The rarest line that both have, where it first occurs in each. */
function rarest(a, a0, a1, b, b0, b1) {
  const counts = new Map();
  for (let k = b0; k < b1; k++) {
    const seen = counts.get(b[k]);
    if (seen) seen.count++;
    else counts.set(b[k], { count: 1, a: -1, b: k });
  }
  for (let k = a0; k < a1; k++) {
    const seen = counts.get(a[k]);
    if (!seen) continue;
    seen.count++;
    if (seen.a < 0) seen.a = k;
  }
  let best = null;
  for (const seen of counts.values()) if (seen.a >= 0 && (!best || seen.count < best.count)) best = seen;
  return best ? [[best.a, best.b]] : [];
}

/** Myers 1986, given up beyond `most` differences. */
function shortest(a, a0, a1, b, b0, b1, most) {
  const [n, m] = [a1 - a0, b1 - b0];
  const limit = Math.min(most, n + m);
  const furthest = new Int32Array(2 * limit + 3);
  const middle = limit + 1;
  const trail = [];
  let work = 0;
  for (let d = 0; d <= limit; d++) {
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && furthest[middle + k - 1] < furthest[middle + k + 1]) ? furthest[middle + k + 1] : furthest[middle + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && a[a0 + x] === b[b0 + y]) x++, y++, work++;
      furthest[middle + k] = x;
      work++;
      if (x >= n && y >= m) return { hunks: walkBack(trail, middle, n, m, d, k, a0, b0), work };
    }
    trail.push(furthest.slice());
  }
  return { hunks: null, work };
}

function walkBack(trail, middle, n, m, d, k, a0, b0) {
  const hunks = [];
  let [x, y] = [n, m];
  for (; d > 0; d--) {
    const before = trail[d - 1];
    const down = k === -d || (k !== d && before[middle + k - 1] < before[middle + k + 1]);
    k = down ? k + 1 : k - 1;
    const fromX = before[middle + k];
    const fromY = fromX - k;
    [x, y] = down ? [fromX, fromY + 1] : [fromX + 1, fromY];
    hunks.push([a0 + fromX, a0 + x, b0 + fromY, b0 + y]);
    [x, y] = [fromX, fromY];
  }
  return hunks.reverse();
}

/**
 * Rows of a diff: `{kind: same|add|del|change|fold, a, b, pair}`; a and b are places in the two lists, pair that of
 * the line which took its place, or which it took the place of.
 */
function diffRows(hunks, aCount, bCount, { side, fold, opened }) {
  const rows = [];
  const same = (a0, a1, b0, first, last) => {
    const [head, tail] = [first ? 0 : CONTEXT, last ? 0 : CONTEXT];
    const hidden = a1 - a0 - head - tail;
    if (!fold || hidden < 2 || opened.has(a0)) {
      for (let k = 0; k < a1 - a0; k++) rows.push({ kind: "same", a: a0 + k, b: b0 + k });
      return;
    }
    for (let k = 0; k < head; k++) rows.push({ kind: "same", a: a0 + k, b: b0 + k });
    rows.push({ kind: "fold", a: a0 + head, b: b0 + head, at: a0, count: hidden });
    for (let k = a1 - a0 - tail; k < a1 - a0; k++) rows.push({ kind: "same", a: a0 + k, b: b0 + k });
  };
  let [a, b] = [0, 0];
  for (const [a0, a1, b0, b1] of hunks) {
    if (a < a0) same(a, a0, b, a === 0, false);
    if (side)
      for (let k = 0; k < Math.max(a1 - a0, b1 - b0); k++) {
        const [i, j] = [a0 + k < a1 ? a0 + k : -1, b0 + k < b1 ? b0 + k : -1];
        rows.push({ kind: i < 0 ? "add" : j < 0 ? "del" : "change", a: i, b: j });
      }
    else {
      for (let k = a0; k < a1; k++) rows.push({ kind: "del", a: k, b: -1, pair: b0 + k - a0 < b1 ? b0 + k - a0 : -1 });
      for (let k = b0; k < b1; k++) rows.push({ kind: "add", a: -1, b: k, pair: a0 + k - b0 < a1 ? a0 + k - b0 : -1 });
    }
    [a, b] = [a1, b1];
  }
  if (a < aCount) same(a, aCount, b, a === 0, true);
  return rows;
}

/** Where two lines differ, between their common beginning and end; null where they have little in common. */
function changedPart(one, other) {
  const most = Math.min(one.length, other.length);
  let from = 0;
  while (from < most && one[from] === other[from]) from++;
  let end = 0;
  while (end < most - from && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
  const alike = (text) => text.replace(/\s+/g, "").length;
  const common = alike(one.slice(0, from)) + alike(one.slice(one.length - end));
  return common * 3 >= Math.max(alike(one), alike(other)) ? [from, one.length - end] : null;
}

// The page's pieces ------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function inSeconds(seconds) {
  const [value, unit] = seconds >= 1 ? [seconds, "s"] : seconds >= 1e-3 ? [seconds * 1e3, "ms"] : [seconds * 1e6, "µs"];
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

function inBytes(bytes) {
  return bytes < 1000 ? plural(bytes, "byte") : bytes < 1e6 ? `${(bytes / 1e3).toPrecision(3)} kB` : `${(bytes / 1e6).toPrecision(3)} MB`;
}

/** A line's characters in their colours; `ranges` are `[from, to, class]`, apart and in order. */
function paintLine(element, line, ranges, most) {
  const text = line.text;
  const end = Math.min(text.length, most);
  let at = 0;
  let next = 0;
  const put = (to, ink) => {
    while (at < to) {
      while (next < ranges.length && ranges[next][1] <= at) next++;
      const range = next < ranges.length && ranges[next][0] < to ? ranges[next] : null;
      const stop = range ? (range[0] > at ? range[0] : Math.min(to, range[1])) : to;
      const name = [ink && `avial-ink-${ink}`, range && range[0] <= at && range[2]].filter(Boolean).join(" ");
      const piece = text.slice(at, stop);
      if (name) element.append(make("span", { class: name, text: piece }));
      else element.append(piece);
      at = stop;
    }
  };
  for (const [, ink, length] of line.ink.matchAll(/([a-z])(\d+)/g)) put(Math.min(end, at + Number(length)), ink === "x" ? "" : ink);
  put(end, "");
  if (end < text.length) element.append(make("span", { class: "avial-more", text: ` … ${(text.length - end).toLocaleString("en")} more characters` }));
}

/** A list of lines of which only those in sight are in the page; one of them is the current one. */
class LinePane {
  constructor(prefix, label, on) {
    this.on = on;
    this.prefix = prefix;
    this.rows = [];
    this.cursor = -1;
    this.canvas = make("div", { class: "avial-canvas", role: "presentation" });
    this.scroller = make("div", { class: "avial-lines", role: "listbox", tabindex: "0", "aria-label": label }, this.canvas);
    this.ruler = make("div", { class: "avial-ruler", "aria-hidden": "true" });
    this.element = make("div", { class: "avial-pane" }, this.scroller, this.ruler);
    // Where it is scrolled to and how high it is are kept: to ask the page costs a layout.
    this.top = 0;
    this.height = 0;
    this.scroller.addEventListener("scroll", () => {
      const moved = this.top !== this.scroller.scrollTop;
      this.top = this.scroller.scrollTop;
      if (moved) this.paint();
      on.scroll?.(this);
    });
    this.scroller.addEventListener("mousemove", (event) => this.hover(this.rowAt(event)));
    this.scroller.addEventListener("mouseleave", () => this.hover(-1));
    // Not "click": pressing gives the pane the focus, which paints it anew, and a browser sends no
    // click where the line that was pressed has gone.
    let pressed = -1;
    this.scroller.addEventListener("mousedown", (event) => {
      pressed = event.button === 0 ? this.rowAt(event) : -1;
    });
    this.scroller.addEventListener("mouseup", (event) => {
      const k = event.button === 0 ? this.rowAt(event) : -1;
      if (k < 0 || k !== pressed || String(getSelection())) return; // what ends a selection picks nothing
      this.cursor = k;
      this.paint();
      on.pick?.(k, this);
    });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.scroller.addEventListener("focus", () => {
      if (this.cursor < 0 && this.rows.length) this.cursor = Math.ceil(this.top / ROW);
      this.paint();
    });
    this.ruler.addEventListener("click", (event) => {
      const share = event.offsetY / this.ruler.clientHeight;
      this.reveal(Math.floor(share * this.rows.length));
    });
    // A pane that was hidden or grew shows more lines.
    this.watch = new ResizeObserver(() => {
      this.height = this.scroller.clientHeight;
      this.paint();
    });
    this.watch.observe(this.scroller);
  }

  /** `look(row, k)` -> `{line, number, sign, kind, marked, ranges, words}` of a row; `paint` shows it. */
  set(rows, look, width) {
    this.rows = rows;
    this.look = look;
    this.cursor = Math.min(this.cursor, rows.length - 1);
    this.canvas.style.height = `${rows.length * ROW}px`;
    this.canvas.style.minWidth = `calc(${width + 2}ch + 5.5em)`;
  }

  rowAt(event) {
    const k = Math.floor((event.clientY - this.canvas.getBoundingClientRect().top) / ROW);
    return k >= 0 && k < this.rows.length ? k : -1;
  }

  hover(k) {
    if (k === this.hovered) return;
    this.hovered = k;
    this.on.hover?.(k, this);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.height / ROW) - 1);
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    if (event.key in steps && !event.shiftKey) {
      const to = Math.max(0, Math.min(this.rows.length - 1, this.cursor + steps[event.key]));
      this.go(to);
      this.on.move?.(to, this);
    } else if (event.key === "Enter" || event.key === " ") this.on.pick?.(this.cursor, this);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  go(k) {
    this.cursor = k;
    this.reveal(k, true);
  }

  scrollTo(top) {
    this.scroller.scrollTop = top;
    this.top = this.scroller.scrollTop; // no further than it goes
  }

  /** Scrolls so that row k is in sight: in the middle, or (near) just so far as needed. */
  reveal(k, near = false) {
    const [from, to] = [k * ROW, (k + 1) * ROW];
    const out = from < this.top || to > this.top + this.height;
    if (out && !near) this.scrollTo(from - this.height / 2);
    else if (from < this.top) this.scrollTo(from);
    else if (out) this.scrollTo(to - this.height);
    this.paint();
  }

  paint() {
    if (!this.look) return;
    const first = Math.max(0, Math.floor(this.top / ROW) - 8);
    const last = Math.min(this.rows.length, first + Math.ceil((this.height || 400) / ROW) + 16);
    const shown = [];
    for (let k = first; k < last; k++) shown.push(this.row(k));
    this.canvas.replaceChildren(...shown);
    const active = this.cursor >= first && this.cursor < last;
    if (active) this.scroller.setAttribute("aria-activedescendant", `${this.prefix}-${this.cursor}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  row(k) {
    const look = this.look(this.rows[k], k);
    const names = ["avial-line", `avial-${look.kind}`];
    if (look.marked) names.push("avial-marked");
    if (k === this.cursor) names.push("avial-current");
    const element = make("div", {
      class: names.join(" "),
      role: "option",
      id: `${this.prefix}-${k}`,
      "aria-selected": String(k === this.cursor),
      "aria-posinset": k + 1,
      "aria-setsize": this.rows.length,
      "aria-label": look.kind === "none" ? "no line" : null,
      style: `top:${k * ROW}px`,
    });
    const sign = look.marked ? `${look.sign ?? ""}◆` : (look.sign ?? "");
    element.append(make("span", { class: "avial-no", text: look.number ?? "" }), make("span", { class: "avial-sign", text: sign }));
    const code = make("span", { class: "avial-code" });
    if (look.words) code.textContent = look.words;
    else if (look.line) paintLine(code, look.line, look.ranges ?? [], look.most ?? COLUMNS);
    element.append(code);
    return element;
  }

  /** Small marks beside the scroll bar, at most one a pixel or so: `kinds[k]` of row k, or "". */
  setTicks(kinds) {
    const most = 150;
    const found = {};
    kinds.forEach((kind, k) => kind && (found[kind] ??= new Set()).add(Math.floor((k / kinds.length) * most)));
    const ticks = Object.entries(found).flatMap(([kind, places]) =>
      [...places].map((place) => make("i", { class: `avial-tick-${kind}`, style: `top:${(place / most) * 100}%` })),
    );
    this.ruler.replaceChildren(...ticks);
  }

  dispose() {
    this.watch.disconnect();
  }
}

// What is shown ----------------------------------------------------------------------------------

/** A compilation: its stages, and the texts that are here. */
class Version {
  constructor(number, label, data) {
    this.number = number;
    this.label = label;
    this.drafts = new Map(Object.entries(data.drafts ?? {}));
    this.texts = new Map();
    this.take(data);
  }

  take(data) {
    this.data = data;
    this.stages = data.stages;
    this.origins = new Map();
    this.places = new Map();
    this.source = unpack(data, data.source.text);
    data.stages.forEach((stage, s) => {
      this.put(s, null, data, stage.text, stage.kept >= stage.lines);
      stage.passes.forEach((pass, p) => pass.text && this.put(s, p, data, pass.text, true));
    });
  }

  put(stage, pass, book, spans, whole) {
    const key = `${stage} ${pass ?? ""}`;
    if (this.texts.get(key)?.whole && !whole) return;
    this.texts.set(key, { lines: unpack(book, spans), whole, serial: ++texts });
  }

  /** The step whose text this is: an unchanged pass has that of the one before it. */
  held({ stage, pass }) {
    if (pass === null) return { stage, pass };
    for (let p = pass; p >= 0; p--) if (this.stages[stage].passes[p].changed) return { stage, pass: p };
    return { stage: this.stages[stage].before ?? stage, pass: null };
  }

  text(step) {
    const { stage, pass } = this.held(step);
    return this.texts.get(`${stage} ${pass ?? ""}`);
  }

  /** What this step was made from; null for the first. */
  before({ stage, pass }) {
    const own = this.stages[stage];
    if (pass !== null && pass > 0) return { stage, pass: pass - 1 };
    return own.before === null ? null : { stage: own.before, pass: null };
  }

  /** Whether a stage was made from this one, directly or not. */
  descends(stage, from) {
    while (stage !== null && stage !== from) stage = this.stages[stage].before;
    return stage === from;
  }

  name({ stage, pass }) {
    const own = this.stages[stage];
    return pass === null ? own.name : `${own.name} after ${own.passes[pass].name}`;
  }

  /** Of each line of a step its cell lines, or null where nothing is known of the step. */
  originsOf(step) {
    const { stage, pass } = this.held(step);
    const key = `${stage} ${pass ?? ""}`;
    if (!this.origins.has(key)) this.origins.set(key, pass === null ? this.stageOrigins(stage) : this.passOrigins(stage, pass));
    return this.origins.get(key);
  }

  stageOrigins(stage) {
    const stretches = this.stages[stage].origins;
    return stretches && stretches.flatMap(([count, ...lines]) => new Array(count).fill(lines));
  }

  /** A pass's lines are known by those of the stages around it that they are equal to. */
  passOrigins(stage, pass) {
    const lines = this.texts.get(`${stage} ${pass}`)?.lines;
    if (!lines || !this.stages[stage].origins) return null;
    const found = new Array(lines.length).fill([]);
    const around = [{ stage, pass: null }, this.before({ stage, pass: 0 })];
    for (const step of around.filter((each) => each && this.text(each))) {
      const [known, other] = [this.originsOf(step), this.text(step).lines];
      let [i, j] = [0, 0];
      const hunks = diffLines(keysOf(lines, {}), keysOf(other, {}));
      for (const [a0, a1, b0, b1] of [...hunks, [lines.length, lines.length, other.length, other.length]]) {
        for (; i < a0; i++, j++) if (!found[i].length) found[i] = known?.[j] ?? [];
        [i, j] = [a1, b1];
      }
    }
    return found;
  }

  /** The places in a stage of what became of these lines of the cell. */
  placesOf(stage, cellLines) {
    if (!this.places.has(stage)) {
      const places = new Map();
      let at = 0;
      for (const [count, ...lines] of this.stages[stage].origins ?? []) {
        for (const line of lines) {
          const known = places.get(line);
          if (known) known.push([at, at + count]);
          else places.set(line, [[at, at + count]]);
        }
        at += count;
      }
      this.places.set(stage, places);
    }
    const of = this.places.get(stage);
    const seen = new Set();
    for (const line of cellLines) for (const [from, to] of of.get(line) ?? []) for (let k = from; k < to; k++) seen.add(k);
    return seen;
  }
}

const MODES = [
  ["one", "One", "the text of this step alone"],
  ["side", "Side by side", "what is compared on the left, this step on the right"],
  ["unified", "Unified", "both in one column, − removed, + added"],
];

const KEYS = "← → or j k step through the stages, Shift+← Shift+→ through passes, ↑ ↓ move by line, Enter marks a line's origins and results, Escape unmarks, / searches, n N next and previous match, d changes the view, e edits.";

class Stepper {
  constructor(host, data, { ask, say }) {
    this.host = host;
    this.ask = ask;
    this.told = say;
    this.prefix = `avial-stepper-${++mounts}`;
    this.versions = [new Version(0, data.edited ? `edited by hand: ${data.edited}` : "as compiled", data)];
    this.version = this.versions[0];
    this.step = { stage: Math.max(0, this.version.stages.findIndex((stage) => stage.name === data.at)), pass: null };
    Object.assign(this, { mode: "one", base: "before", part: "", filter: "", query: "", hit: -1, editing: false, gone: "" });
    Object.assign(this, { fold: true, ignore: { names: false, indent: true }, wide: false, opened: new Set() });
    Object.assign(this, { pinned: null, hovered: null, unfolded: new Set(), unchanged: new Set(), loading: new Map(), diffs: new Map() });
    this.build();
    this.list();
    this.show();
    this.lookInside();
  }

  // The frame --------------------------------------------------------------------------------------

  build() {
    const button = (text, title, onclick, more = {}) => make("button", { type: "button", text, title, onclick, ...more });
    const check = (text, title, onchange, checked) => {
      const box = make("input", { type: "checkbox", onchange: () => onchange(box.checked), checked });
      return make("label", { class: "avial-check", title }, box, text);
    };
    this.live = make("div", { class: "avial-hidden", "aria-live": "polite" });
    this.filterBox = make("input", { type: "search", placeholder: "filter …", title: "filter stages and passes by name", "aria-label": "filter stages and passes by name", oninput: () => this.setFilter() });
    this.listBox = make("div", { class: "avial-list" });
    this.nav = make("div", { class: "avial-nav", role: "navigation", "aria-label": "stages and passes" }, this.filterBox, this.listBox);

    this.modeButtons = MODES.map(([mode, text, title]) => button(text, title, () => this.setMode(mode)));
    this.baseBox = make("select", { "aria-label": "compare with", onchange: () => this.setBase(this.baseBox.value) });
    this.baseLabel = make("label", {}, "compare with ", this.baseBox);
    this.partBox = make("select", { "aria-label": "task or function", onchange: () => this.setPart(this.partBox.value) });
    this.partLabel = make("label", {}, "show ", this.partBox);
    this.versionBox = make("select", { "aria-label": "version", onchange: () => this.setVersion(Number(this.versionBox.value)) });
    this.versionLabel = make("label", { class: "avial-versions", hidden: true }, "version ", this.versionBox);
    this.editButton = button("Edit", "edit the text of this stage and compile on from it", () => this.openEdit());
    this.diffChecks = make(
      "span",
      { class: "avial-checks" },
      check("fold unchanged", "hide lines that are equal in both", (on) => this.set({ fold: on }), true),
      check("ignore value names", "treat %12 and %arg3 as equal in both texts", (on) => this.set({ ignore: { ...this.ignore, names: on } })),
      check("ignore indentation", "ignore leading blanks in both texts", (on) => this.set({ ignore: { ...this.ignore, indent: on } }), true),
    );
    this.bar = make(
      "div",
      { class: "avial-bar", role: "toolbar", "aria-label": "what is shown" },
      button("◀", "previous stage (←)", () => this.stepStage(-1), { "aria-label": "previous stage" }),
      button("▶", "next stage (→)", () => this.stepStage(1), { "aria-label": "next stage" }),
      make("span", { class: "avial-group", role: "group", "aria-label": "view" }, ...this.modeButtons),
      this.baseLabel,
      this.partLabel,
      this.versionLabel,
      this.editButton,
    );
    this.searchBox = make("input", { type: "search", placeholder: "search the text", "aria-label": "search the text", oninput: () => this.search(), onkeydown: (event) => this.searchKey(event) });
    this.searchCount = make("span", { class: "avial-count", role: "status" });
    this.copyButton = button("Copy stage", "copy the whole text of this step", () => this.copyStep());
    this.tools = make(
      "div",
      { class: "avial-bar avial-tools" },
      this.searchBox,
      button("↑", "previous match (N)", () => this.stepHit(-1), { "aria-label": "previous match" }),
      button("↓", "next match (n)", () => this.stepHit(1), { "aria-label": "next match" }),
      this.searchCount,
      this.copyButton,
      check("whole lines", `show lines longer than ${COLUMNS} characters in full`, (on) => this.set({ wide: on })),
      this.diffChecks,
    );
    this.heading = make("h3", { class: "avial-heading" });
    this.facts = make("ul", { class: "avial-facts", "aria-label": "facts of this stage", tabindex: "0" });
    this.command = make("div", { class: "avial-command" });
    this.notes = make("div", { class: "avial-notes" });
    const on = { hover: (k, pane) => this.lineHovered(k, pane), pick: (k, pane) => this.linePicked(k, pane), move: (k, pane) => this.lineMoved(k, pane) };
    this.left = new LinePane(`${this.prefix}-a`, "the text compared with", { ...on, scroll: () => this.follow(this.left, this.right) });
    this.right = new LinePane(`${this.prefix}-b`, "the text of this step", { ...on, scroll: () => this.follow(this.right, this.left) });
    this.cell = new LinePane(`${this.prefix}-c`, "the cell", {
      hover: (k) => this.hoverLines(k < 0 ? null : [k + 1]),
      pick: (k) => this.pin([k + 1], true),
      move: (k) => this.pin([k + 1], true),
    });
    this.cellTitle = make("h4");
    this.marks = make("p", { class: "avial-marks" });
    this.cellBox = make("section", { class: "avial-cell", "aria-label": "the cell" }, this.cellTitle, this.cell.element, this.marks);
    this.textBox = make("div", { class: "avial-texts" }, this.left.element, this.right.element);
    this.editBox = make("div", { class: "avial-edit", hidden: true });
    this.main = make("section", { class: "avial-main", "aria-label": "the stage" }, this.heading, this.facts, this.command, this.notes, this.tools, this.textBox, this.editBox);
    this.help = make("details", { class: "avial-help" }, make("summary", { text: "Keys" }), make("p", { text: KEYS }));
    this.root = make(
      "div",
      { class: "avial-stepper", role: "group", "aria-label": "stage stepper", onkeydown: (event) => this.key(event) },
      this.bar,
      make("div", { class: "avial-body" }, this.nav, this.cellBox, this.main),
      this.help,
      this.live,
    );
    this.host.replaceChildren(this.root);
  }

  dispose() {
    for (const pane of [this.left, this.right, this.cell]) pane.dispose();
    this.host.replaceChildren();
  }

  say(words) {
    this.live.textContent = words;
    this.told?.(words);
  }

  /** New data of the version shown, or of a new program. */
  update(data) {
    const name = this.version.stages[this.step.stage]?.name;
    this.version.take(data);
    this.step = { stage: Math.max(0, this.version.stages.findIndex((stage) => stage.name === name)), pass: null };
    this.list();
    this.show();
  }

  // The list of stages and passes ------------------------------------------------------------------

  list() {
    const { stages, data, drafts } = this.version;
    const wanted = this.filter.toLowerCase();
    const fits = (name) => name.toLowerCase().includes(wanted);
    this.entries = [];
    this.stageButtons = [];
    const edited = stages.findIndex((stage) => stage.name === data.edited);
    const items = stages.map((stage, s) => {
      const passes = stage.passes.map((pass, p) => ({ pass, p })).filter(({ pass }) => !wanted || fits(pass.name));
      if (wanted && !fits(stage.name) && !fits(stage.title) && !passes.length) return null;
      const badge = make("span", { class: "avial-badge" });
      const marks = [edited === s ? "edited by hand" : edited >= 0 && this.version.descends(s, edited) ? "made from the edited one" : "", drafts.has(stage.name) ? "✎ draft" : ""].filter(Boolean);
      const button = make(
        "button",
        { type: "button", class: "avial-stage", title: stage.title, onclick: () => this.goTo({ stage: s, pass: null }) },
        make("span", { class: "avial-name", text: stage.name }),
        make("span", { class: "avial-size", text: [plural(stage.lines, "line"), ...marks].join(" · ") }),
        badge,
      );
      this.stageButtons[s] = { button, badge };
      this.entries.push({ step: { stage: s, pass: null }, button });
      return make("li", {}, button, this.passList(s, passes, wanted));
    });
    this.listBox.replaceChildren(make("ol", { class: "avial-stages" }, ...items));
    if (!items.some(Boolean)) this.listBox.append(make("p", { class: "avial-note", text: `no stage or pass is called "${this.filter}"` }));
    this.mark();
    this.markList();
  }

  passList(s, passes, wanted) {
    if (!passes.length) return null;
    const changed = passes.filter(({ pass }) => pass.changed).length;
    const open = Boolean(wanted) || this.unfolded.has(s);
    const all = Boolean(wanted) || this.unchanged.has(s);
    const rows = passes.filter(({ pass }) => all || pass.changed).map(({ pass, p }) => this.passRow(s, p, pass));
    const hidden = passes.length - rows.length;
    const more = hidden || this.unchanged.has(s)
      ? make("li", {}, make("button", { type: "button", class: "avial-fold", text: hidden ? `${hidden} unchanged` : "hide unchanged", "aria-expanded": String(!hidden), onclick: () => this.toggle(this.unchanged, s) }))
      : null;
    const words = `${plural(passes.length, "pass").replace("passs", "passes")}, ${changed} changed`;
    return make(
      "div",
      { class: "avial-passes" },
      make("button", { type: "button", class: "avial-fold", text: `${open ? "▾" : "▸"} ${words}`, "aria-expanded": String(open), onclick: () => this.toggle(this.unfolded, s) }),
      open ? make("ol", {}, ...rows, more) : null,
    );
  }

  passRow(s, p, pass) {
    const counts = pass.changed
      ? [make("span", { class: "avial-plus", text: `+${pass.added}` }), make("span", { class: "avial-minus", text: `−${pass.removed}` })]
      : [make("span", { text: "unchanged" })];
    const step = { stage: s, pass: p };
    const button = make(
      "button",
      { type: "button", class: pass.changed ? "avial-pass" : "avial-pass avial-same", title: `${pass.name}, ${inSeconds(pass.seconds)}`, onclick: () => this.goTo(step) },
      make("span", { class: "avial-name", text: pass.name }),
      make("span", { class: "avial-size" }, ...counts),
    );
    this.entries.push({ step, button });
    return make("li", {}, button);
  }

  toggle(set, s) {
    if (!set.delete(s)) set.add(s);
    const [key, at] = [set === this.unchanged ? ".avial-passes ol .avial-fold" : ".avial-passes > .avial-fold", s];
    this.list();
    // The list was made anew: the focus goes back to where it was.
    this.stageButtons[at]?.button.parentElement.querySelector(key)?.focus();
  }

  setFilter() {
    this.filter = this.filterBox.value.trim();
    this.list();
  }

  /** Which entry is the one shown. */
  mark() {
    for (const { step, button } of this.entries) {
      const here = step.stage === this.step.stage && step.pass === this.step.pass;
      if (here) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
      if (here) {
        const [list, box] = [this.listBox.getBoundingClientRect(), button.getBoundingClientRect()];
        if (box.top < list.top || box.bottom > list.bottom) this.listBox.scrollTop += box.top - list.top - list.height / 3;
      }
    }
  }

  // Stepping ---------------------------------------------------------------------------------------

  goTo(step) {
    this.keepDraft();
    this.editing = false;
    this.step = step;
    this.opened.clear();
    this.hit = -1;
    if (step.pass !== null && !this.unfolded.has(step.stage)) {
      this.unfolded.add(step.stage);
      this.list();
    }
    this.fresh = true;
    this.show();
    this.say(this.words());
  }

  /** A step is shown from what one looks for: what is marked, else what changed, else its beginning. */
  begin() {
    const marked = this.markedRow();
    const changed = this.rows.findIndex(({ kind }) => kind !== "same" && kind !== "fold");
    const first = Math.max(0, marked < 0 ? changed : marked);
    for (const pane of [this.left, this.right]) {
      pane.cursor = first;
      if (pane.scroller.scrollLeft) pane.scroller.scrollLeft = 0;
      pane.scrollTo(first * ROW - pane.height / 3);
    }
  }

  stepStage(by) {
    // From within a stage, back is to its beginning: the stage before.
    const to = this.step.stage + by;
    if (to >= 0 && to < this.version.stages.length) this.goTo({ stage: to, pass: null });
    else this.say(by < 0 ? "this is the first stage" : "this is the last stage");
  }

  stepPass(by) {
    const steps = this.version.stages.flatMap((stage, s) => [
      ...stage.passes.flatMap((pass, p) => (pass.changed || this.unchanged.has(s) ? [{ stage: s, pass: p }] : [])),
      { stage: s, pass: null },
    ]);
    const order = ({ stage, pass }) => stage * 1e6 + (pass ?? 1e5);
    const here = order(this.step);
    const to = by > 0 ? steps.find((step) => order(step) > here) : steps.reverse().find((step) => order(step) < here);
    if (to) this.goTo(to);
    else this.say(by < 0 ? "there is no pass before" : "there is no pass after");
  }

  words() {
    const { stages } = this.version;
    const stage = stages[this.step.stage];
    const where = `${this.step.stage + 1} of ${stages.length}: ${stage.name}`;
    if (this.step.pass === null) return `${where}, ${stage.title}`;
    const pass = stage.passes[this.step.pass];
    return `${where}, after pass ${pass.name}, ${pass.changed ? `${pass.added} lines added, ${pass.removed} removed` : "unchanged"}`;
  }

  /** Shows the step otherwise; who was editing goes on reading, and the draft is kept. */
  set(some) {
    this.keepDraft();
    Object.assign(this, some, { editing: false, fresh: true });
    this.show();
  }

  setMode(mode) {
    this.set({ mode });
    this.say(MODES.find(([name]) => name === mode)[1]);
  }

  setBase(base) {
    this.set({ base, mode: this.mode === "one" ? "side" : this.mode });
  }

  setPart(part) {
    this.opened.clear();
    this.set({ part });
  }

  setVersion(number) {
    this.keepDraft();
    const name = this.version.stages[this.step.stage].name;
    this.version = this.versions[number];
    const stage = Math.max(0, this.version.stages.findIndex((each) => each.name === name));
    this.step = { stage, pass: null };
    this.editing = false;
    this.list();
    this.show();
    this.say(`version ${this.version.label}`);
  }

  // Texts that are not here yet --------------------------------------------------------------------

  /** A question to the kernel; null where there is none to answer. */
  async question(question) {
    if (!this.ask || this.gone) return null;
    try {
      return await this.ask(question);
    } catch (error) {
      this.lose(String(error?.message ?? error));
      return null;
    }
  }

  /** The kernel is gone: what is here stays. */
  lose(why) {
    this.gone = why;
    this.show();
  }

  /** Loads the text of a step once; resolves to whether it came. */
  load(version, step) {
    const { stage, pass } = version.held(step);
    const key = `${version.number} ${stage} ${pass ?? ""}`;
    if (version.texts.get(`${stage} ${pass ?? ""}`)?.whole) return Promise.resolve(true);
    if (!this.loading.has(key)) {
      const wanted = { want: "text", version: version.number, stage: version.stages[stage].name, pass };
      const loaded = this.question(wanted).then((answer) => {
        this.loading.delete(key);
        if (!answer?.text) return false;
        version.put(stage, pass, answer, answer.text, true);
        version.origins.delete(`${stage} ${pass ?? ""}`);
        return true;
      });
      this.loading.set(key, loaded);
    }
    return this.loading.get(key);
  }

  /** What stages are made of takes as long as compiling: of a large program only when it is asked for. */
  lookInside() {
    const size = this.version.stages.reduce((sum, stage) => sum + stage.bytes, 0);
    this.offered = Boolean(this.ask) && !this.version.data.inside && size > LARGE;
    if (this.ask && !this.version.data.inside && !this.offered) this.loadInside();
    if (this.offered) this.show();
  }

  async loadInside() {
    const version = this.version;
    this.offered = false;
    this.show();
    const answer = await this.question({ want: "inside", version: version.number });
    if (!answer?.data) {
      if (answer?.error) this.notInside = answer.error.message;
      return this.show();
    }
    version.take(answer.data);
    // What was typed before the page was loaded anew.
    for (const [name, text] of Object.entries(answer.data.drafts ?? {})) if (!version.drafts.has(name)) version.drafts.set(name, text);
    if (version !== this.version) return;
    this.list();
    this.show();
  }

  /** The steps beside this one are got ready while nothing else is to do. */
  prefetch() {
    const { stage, pass } = this.step;
    const near = [1, -1].map((by) => (pass === null ? { stage: stage + by, pass } : { stage, pass: pass + by }));
    for (const step of near.filter((each) => (pass === null ? this.version.stages[each.stage] : this.version.stages[stage].passes[each.pass]))) {
      this.load(this.version, step);
      const whenIdle = window.requestIdleCallback ?? setTimeout;
      const showing = this.showing;
      whenIdle(() => {
        const compared = showing === this.showing && this.compared(step);
        if (compared && compared.version.text(compared.step) && this.version.text(step)) this.diff(compared, step);
      });
    }
  }

  // The text ---------------------------------------------------------------------------------------

  /** What the step is compared with: `{version, step}` or null. */
  compared(of = this.step) {
    if (this.mode === "one") return null;
    if (this.base === "before") {
      const step = this.version.before(of);
      return step && { version: this.version, step };
    }
    const [number, name] = this.base.split(/ (.*)/);
    const version = this.versions[Number(number)] ?? this.version;
    const wanted = name === "" ? this.version.stages[of.stage].name : name;
    const stage = version.stages.findIndex((each) => each.name === wanted);
    return stage < 0 ? null : { version, step: { stage, pass: null } };
  }

  /** The lines of a text that are shown, and where they are in it. */
  selected(version, step) {
    const lines = version.text(step)?.lines ?? [];
    const { stage, pass } = version.held(step);
    const parts = pass === null ? version.stages[stage].parts.filter(([name]) => name === this.part) : [];
    if (!this.part || !parts.length) return { lines, first: (k) => k };
    const kept = parts.flatMap(([, from, to]) => Array.from({ length: Math.max(0, Math.min(to, lines.length) - from) }, (_, k) => from + k));
    return { lines: kept.map((k) => lines[k]), first: (k) => kept[k] };
  }

  async show() {
    const showing = (this.showing = {});
    this.frame();
    if (this.editing) return this.showEdit();
    const compared = this.compared();
    this.draw(compared);
    const wanted = [this.load(this.version, this.step)];
    if (compared) wanted.push(this.load(compared.version, compared.step));
    const missing = this.missing(compared);
    await Promise.all(wanted);
    if (showing !== this.showing) return;
    if (missing) this.draw(compared);
    this.prefetch();
  }

  missing(compared) {
    return [{ version: this.version, step: this.step }, compared].some((each) => each && !each.version.text(each.step)?.whole);
  }

  draw(compared) {
    const b = this.selected(this.version, this.step);
    const origins = this.version.originsOf(this.step);
    this.b = { ...b, origins, version: this.version };
    this.a = null;
    this.rows = [];
    if (compared) {
      const a = this.selected(compared.version, compared.step);
      this.a = { ...a, origins: compared.version.originsOf(compared.step), version: compared.version };
      const hunks = this.diff(compared);
      this.changes = hunks.reduce(([plus, minus], [a0, a1, b0, b1]) => [plus + b1 - b0, minus + a1 - a0], [0, 0]);
      this.rows = diffRows(hunks, a.lines.length, b.lines.length, { side: this.mode === "side", fold: this.fold && !this.query, opened: this.opened });
    } else this.rows = b.lines.map((_, k) => ({ kind: "same", a: -1, b: k }));
    this.textBox.hidden = false;
    this.editBox.hidden = true;
    this.tools.hidden = false;
    const side = this.mode === "side" && this.a;
    this.left.element.hidden = !side;
    const width = (lines) => Math.min(this.wide ? Infinity : COLUMNS + 30, lines.reduce((most, { text }) => Math.max(most, text.length), 0));
    const both = Math.max(width(b.lines), this.a ? width(this.a.lines) : 0);
    this.find();
    this.left.set(side ? this.rows : [], (row, k) => this.look(row, k, "a"), both);
    this.right.set(this.rows, (row, k) => this.look(row, k, side ? "b" : ""), both);
    this.title(compared);
    this.tell(compared);
    if (this.fresh && this.version.text(this.step)) {
      this.begin();
      this.fresh = false;
    }
    this.markLines();
  }

  diff(compared, step = this.step) {
    const [a, b] = [compared.version.text(compared.step), this.version.text(step)];
    const key = JSON.stringify([a?.serial, b?.serial, this.part, this.ignore]);
    if (!this.diffs.has(key)) {
      const [aKeys, bKeys] = [this.selected(compared.version, compared.step), this.selected(this.version, step)].map(({ lines }) => keysOf(lines, this.ignore));
      this.diffs.set(key, diffLines(aKeys, bKeys));
    }
    return this.diffs.get(key);
  }

  /** How a row looks; `side` is the pane of two, "" the only one. */
  look(row, k, side) {
    if (row.kind === "fold") return { kind: "fold", words: `⋯ ${plural(row.count, "unchanged line")} (Enter or click shows them)`, marked: this.isRowMarked(row) };
    const left = side === "a" || (side === "" && row.b < 0);
    const [from, at] = left ? [this.a, row.a] : [this.b, row.b];
    if (at < 0) return { kind: "none" };
    const line = from.lines[at];
    const number = (one, place) => (one && place >= 0 ? String(one.first(place) + 1) : "");
    const both = side === "" && this.a;
    const ranges = this.ranges(line, row, left);
    return {
      line,
      ranges,
      most: this.wide ? Infinity : COLUMNS,
      kind: row.kind === "change" ? (left ? "del" : "add") : row.kind,
      sign: row.kind === "same" ? "" : left ? "−" : "+",
      number: both ? `${number(this.a, row.a).padStart(5)} ${number(this.b, row.b).padStart(5)}` : number(from, at),
      marked: this.isMarked(from, at),
    };
  }

  ranges(line, row, left) {
    if (this.query) {
      const [text, found] = [line.text.toLowerCase(), []];
      for (let at = text.indexOf(this.query); at >= 0 && found.length < 200; at = text.indexOf(this.query, at + this.query.length))
        found.push([at, at + this.query.length, "avial-found"]);
      return found;
    }
    const other = row.kind === "change" ? (left ? row.b : row.a) : (row.pair ?? -1);
    if (!this.a || other < 0) return [];
    const part = changedPart(line.text, (left ? this.b : this.a).lines[other].text);
    return part && part[1] > part[0] ? [[...part, "avial-differs"]] : [];
  }

  follow(from, to) {
    if (this.mode !== "side" || to.element.hidden) return;
    if (to.top !== from.top) {
      to.scrollTo(from.top);
      to.paint();
    }
    if (to.scroller.scrollLeft !== from.scroller.scrollLeft) to.scroller.scrollLeft = from.scroller.scrollLeft;
  }

  // What is said of it -----------------------------------------------------------------------------

  /** The controls in their present state. */
  frame() {
    this.mark();
    MODES.forEach(([mode], k) => this.modeButtons[k].setAttribute("aria-pressed", String(mode === this.mode)));
    const { stages } = this.version;
    const bases = [["before", "the step before"], ...stages.map((stage) => [`${this.version.number} ${stage.name}`, stage.name])];
    for (const version of this.versions)
      if (version !== this.version) bases.push([`${version.number} `, `same stage, ${version.label}`]);
    choices(this.baseBox, bases, this.base);
    this.base = this.baseBox.value; // the step before, where what was chosen is not there
    const parts = [...new Set(stages.flatMap((stage) => stage.parts.map(([name]) => name)))];
    this.partLabel.hidden = !parts.length;
    choices(this.partBox, [["", "everything"], ...parts.map((name) => [name, name])], this.part);
    this.part = this.partBox.value;
    this.versionLabel.hidden = this.versions.length < 2;
    choices(this.versionBox, this.versions.map((version) => [String(version.number), version.label]), String(this.version.number));
    this.diffChecks.hidden = this.mode === "one";
    const why = this.gone ? "editing needs the kernel" : this.step.pass === null ? "" : "the text of a stage can be edited, not that of a pass";
    this.editButton.hidden = !this.ask;
    this.editButton.disabled = Boolean(why);
    this.editButton.title = why || "edit the text of this stage and compile on from it (e)";
    this.cellTitle.textContent = this.version.data.source.name;
    const source = this.version.source;
    if (this.cell.shown !== source) {
      this.cell.shown = source;
      const magic = this.version.data.source.name.startsWith("In ["); // its own line is line 1
      const width = source.reduce((most, { text }) => Math.max(most, text.length), 0);
      this.painted = undefined;
      this.cell.set(source, (line, k) => ({ line, kind: "same", number: String(k + 1), marked: this.cellLines?.has(k + 1), words: k === 0 && !line.text && magic ? "%%avial …" : "" }), width);
    }
  }

  title(compared) {
    const { stages } = this.version;
    const stage = stages[this.step.stage];
    const where = `${this.step.stage + 1} of ${stages.length} · `;
    const what = this.step.pass === null ? ` – ${stage.title}` : "";
    const name = (version, step) => version.name(step) + (this.versions.length > 1 ? ` (${version.label})` : "");
    const filters = [];
    if (this.part) filters.push(`only ${this.part}`);
    if (compared && this.ignore.names) filters.push("value names ignored in both");
    if (compared && this.ignore.indent) filters.push("indentation ignored in both");
    if (compared && this.fold && !this.query) filters.push("unchanged lines folded");
    const words = compared
      ? `${where}− ${name(compared.version, compared.step)}  + ${name(this.version, this.step)}  (+${this.changes[0]} −${this.changes[1]})`
      : `${where}${name(this.version, this.step)}${what}`;
    this.heading.replaceChildren(make("span", { text: words }));
    if (filters.length) this.heading.append(make("small", { text: ` ${filters.join(", ")}` }));
  }

  tell(compared) {
    const stage = this.version.stages[this.step.stage];
    const pass = this.step.pass === null ? null : stage.passes[this.step.pass];
    const chips = pass
      ? [["time", inSeconds(pass.seconds)], ["changed", pass.changed ? `+${pass.added} −${pass.removed}` : "nothing"]]
      : [["time", stage.seconds ? inSeconds(stage.seconds) : ""], ["lines", stage.lines.toLocaleString("en")], ["size", inBytes(stage.bytes)], ...Object.entries(stage.facts)];
    const items = chips.filter(([, value]) => value).map(([name, value]) => make("li", {}, make("b", { text: name }), ` ${value}`));
    const counts = pass ? [] : Object.entries(stage.counts);
    const most = Math.max(1, ...counts.map(([, count]) => count));
    for (const [name, count] of counts.slice(0, 8))
      items.push(make("li", { class: "avial-op", style: `--share:${Math.round((count / most) * 100)}%` }, make("b", { text: name }), ` ${count.toLocaleString("en")}`));
    if (counts.length > 8) items.push(make("li", { text: `and ${counts.length - 8} more`, title: counts.slice(8).map(([name, count]) => `${name} ${count}`).join(", ") }));
    this.facts.replaceChildren(...items);
    this.tellCommand((pass ?? stage).command, pass ? "needs input that is in no file" : stage.name === this.version.data.edited ? "edited by hand" : this.step.stage ? "made by passes of avial_lab" : "");
    this.tellNotes(compared, stage, pass);
  }

  /** The whole text of a step, loaded where it is not here; null where nobody has it. */
  async textOf(step) {
    await this.load(this.version, step);
    const text = this.version.text(step);
    return text?.whole ? text.lines.map((line) => line.text).join("\n") + "\n" : null;
  }

  async copyStep() {
    const text = await this.textOf(this.step);
    const copied = text !== null && (await copy(text));
    this.announce(this.copyButton, "Copy stage", copied, text === null ? "the text is not here" : "the browser does not allow copying");
  }

  announce(button, words, copied, why) {
    button.textContent = copied ? "Copied" : "Not copied";
    this.say(copied ? "copied" : why);
    setTimeout(() => (button.textContent = words), 1500);
  }

  /** A command with the file that it reads, so that it can be pasted into a shell as it is. */
  async runnable(command) {
    const read = /(?:^|\s)([\w:-]+)\.(?:mlir|ll)(?=\s)/.exec(command.split(/\s-o\s/)[0] + " ");
    const stage = read ? this.version.stages.findIndex(({ name }) => name === read[1]) : -1;
    const text = stage < 0 ? null : await this.textOf({ stage, pass: null });
    if (text === null) return command;
    let end = "END";
    while (text.includes(end)) end += "_";
    return `cat > ${read[0].trim()} <<'${end}'\n${text}${end}\n${command}\n`;
  }

  tellCommand(command, otherwise) {
    if (!command) return this.command.replaceChildren(...(otherwise ? [make("span", { class: "avial-note", text: otherwise })] : []));
    const button = make("button", { type: "button", text: "Copy", title: "copy the command, with the file that it reads", "aria-label": "copy the command" });
    button.addEventListener("click", async () => {
      this.announce(button, "Copy", await copy(await this.runnable(command)), "the browser does not allow copying");
    });
    this.command.replaceChildren(make("code", { text: command, tabindex: "0", "aria-label": "the command that makes it" }), button);
  }

  tellNotes(compared, stage, pass) {
    const notes = [];
    const text = this.version.text(this.step);
    const waiting = this.ask && !this.gone;
    if (!text) notes.push(waiting ? "loading the text …" : "the text of this pass is not included: a running kernel loads it");
    else if (!text.whole) {
      const left = `${(stage.lines - text.lines.length).toLocaleString("en")} of ${plural(stage.lines, "line")}`;
      notes.push(waiting ? `loading ${left} …` : `${left} are not included: a running kernel loads them`);
    }
    if (this.mode !== "one" && !compared && !this.editing) notes.push(this.base === "before" ? "there is no earlier stage to compare with" : "that version has no such stage");
    if (compared && !compared.version.text(compared.step)) notes.push("the text to compare with is not included");
    if (this.part && pass) notes.push("passes are not divided by task: everything is shown");
    else if (this.part && !stage.parts.some(([name]) => name === this.part)) notes.push(`${stage.name} has no ${this.part}: everything is shown`);
    if (this.version.drafts.has(stage.name)) notes.push("this stage has a draft of yours: Edit shows it");
    if (this.notInside) notes.push(`passes and origins are not known: ${this.notInside}`);
    if (this.gone) notes.push(`no kernel answers (${this.gone}): what was loaded is kept; run the cell again to load the rest`);
    this.notes.replaceChildren(...notes.map((words) => make("p", { class: "avial-note", text: words })));
    if (this.offered && !this.gone)
      this.notes.append(make("button", { type: "button", text: "Inspect", title: "passes, origins of lines, counts; takes about as long as compiling", onclick: () => this.loadInside() }));
  }

  // Where lines come from, and what they became ------------------------------------------------------

  get cellLines() {
    return this.hovered ?? this.pinned;
  }

  isMarked(from, at) {
    const wanted = this.cellLines;
    if (!wanted || !from.origins) return false;
    return from.origins[from.first(at)]?.some((line) => wanted.has(line)) ?? false;
  }

  isRowMarked(row) {
    if (!this.cellLines) return false;
    if (row.kind !== "fold") return row.b < 0 ? this.isMarked(this.a, row.a) : this.isMarked(this.b, row.b);
    for (let k = row.b; k < row.b + row.count; k++) if (this.isMarked(this.b, k)) return true;
    return false;
  }

  /** The cell lines of a row, of the pane it is in; null for a fold. */
  originsAt(k, pane) {
    const row = this.rows[k];
    if (!row || row.kind === "fold") return null;
    const left = pane === this.left || row.b < 0;
    const [from, at] = left ? [this.a, row.a] : [this.b, row.b];
    return at < 0 ? null : { lines: from.origins?.[from.first(at)], number: from.first(at) + 1, known: Boolean(from.origins) };
  }

  hoverLines(lines) {
    this.hovered = lines && new Set(lines);
    this.markLines();
  }

  lineHovered(k, pane) {
    const from = k < 0 ? null : this.originsAt(k, pane);
    this.hovered = from?.lines?.length ? new Set(from.lines) : null;
    this.markLines(from);
  }

  linePicked(k, pane) {
    const row = this.rows[k];
    if (row?.kind === "fold") {
      this.opened.add(row.at);
      return this.show();
    }
    this.lineMoved(k, pane);
  }

  lineMoved(k, pane) {
    const from = this.originsAt(k, pane);
    if (!from) return;
    if (pane === this.left || pane === this.right) (pane === this.left ? this.right : this.left).cursor = k;
    this.pin(from.lines ?? [], false, from);
  }

  pin(lines, reveal, from) {
    this.hovered = null;
    this.pinned = lines.length ? new Set(lines) : null;
    this.markLines(from);
    if (reveal) this.revealMarked();
    else if (lines.length) this.cell.reveal(lines[0] - 1);
    this.say(this.marks.textContent);
  }

  unpin() {
    this.pinned = this.hovered = null;
    this.markLines();
  }

  /** The first row that is marked, or -1. */
  markedRow() {
    return this.cellLines ? this.rows.findIndex((row) => this.isRowMarked(row)) : -1;
  }

  revealMarked() {
    const k = this.markedRow();
    if (k >= 0) this.right.reveal(k);
  }

  markLines(from) {
    this.marks.textContent = this.marksInWords(from);
    if (this.painted !== this.cellLines) this.cell.paint();
    this.painted = this.cellLines;
    this.right.paint();
    this.left.paint(); // also where it is hidden: it has no rows then, and must not keep old ones
    this.ticks();
    this.markList();
  }

  marksInWords(from) {
    const stage = this.version.stages[this.step.stage];
    if (from && !from.known) return `where the lines of ${this.version.name(this.step)} come from is not known`;
    if (from && !from.lines.length) return `line ${from.number} comes from no line of the cell`;
    if (from) return `line ${from.number} comes from cell ${inList(from.lines)}`;
    if (!this.cellLines) return this.version.data.inside ? "point at a line: its origins and results are marked ◆" : "where lines come from is not known";
    const count = this.version.placesOf(this.step.stage, this.cellLines).size;
    const what = `cell ${inList([...this.cellLines])}`;
    if (!stage.origins) return `where the lines of ${stage.name} come from is not known`;
    return count ? `${what}: ${plural(count, "line")} of ${stage.name}` : `${what}: no line of ${stage.name} comes from it`;
  }

  markList() {
    this.version.stages.forEach((stage, s) => {
      const entry = this.stageButtons[s];
      if (!entry) return;
      const count = this.cellLines && stage.origins ? this.version.placesOf(s, this.cellLines).size : 0;
      entry.badge.textContent = count ? `◆ ${count.toLocaleString("en")}` : "";
      entry.badge.title = count ? "lines that come from what is marked" : "";
    });
  }

  ticks() {
    const kinds = this.rows.map((row, k) => {
      if (this.hits?.has(k)) return "found";
      if (this.isRowMarked(row)) return "marked";
      return row.kind === "same" || row.kind === "fold" ? "" : row.kind;
    });
    this.right.setTicks(kinds);
  }

  // Search -----------------------------------------------------------------------------------------

  search() {
    const folded = Boolean(this.query) !== Boolean(this.searchBox.value);
    this.query = this.searchBox.value.toLowerCase();
    this.hit = -1;
    if (folded && this.mode !== "one") this.show(); // nothing is folded while one searches
    else {
      this.find();
      this.markLines();
    }
    if (this.query) this.stepHit(1);
  }

  find() {
    this.hits = new Set();
    if (this.query)
      this.rows.forEach((row, k) => {
        const has = (from, at) => at >= 0 && row.kind !== "fold" && from?.lines[at].text.toLowerCase().includes(this.query);
        if (has(this.b, row.b) || (this.a && has(this.a, row.a))) this.hits.add(k);
      });
    this.places = [...this.hits];
    this.countHits();
  }

  countHits() {
    const count = this.places.length;
    const at = this.places.indexOf(this.hit);
    this.searchCount.textContent = !this.query ? "" : !count ? "no line matches" : at < 0 ? plural(count, "line") : `${at + 1} of ${plural(count, "line")}`;
  }

  stepHit(by) {
    if (!this.places.length) return this.countHits();
    const next = by > 0 ? this.places.find((k) => k > this.hit) : [...this.places].reverse().find((k) => k < this.hit);
    this.hit = next ?? (by > 0 ? this.places[0] : this.places[this.places.length - 1]);
    this.right.cursor = this.hit;
    this.right.reveal(this.hit);
    this.follow(this.right, this.left);
    this.countHits();
  }

  searchKey(event) {
    if (event.key === "Enter") this.stepHit(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      this.searchBox.value = "";
      this.search();
      this.right.scroller.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Keys -------------------------------------------------------------------------------------------

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const by = { ArrowLeft: -1, k: -1, ArrowRight: 1, j: 1 }[event.key];
    const others = {
      "/": () => this.searchBox.focus(),
      n: () => this.stepHit(1),
      N: () => this.stepHit(-1),
      K: () => this.stepPass(-1),
      J: () => this.stepPass(1),
      d: () => this.setMode(MODES[(MODES.findIndex(([mode]) => mode === this.mode) + 1) % MODES.length][0]),
      e: () => !this.editButton.disabled && this.openEdit(),
      Escape: () => this.unpin(),
    };
    if (by && event.shiftKey) this.stepPass(by);
    else if (by) this.stepStage(by);
    else if (others[event.key]) others[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab has its own use for j and k
  }

  // Editing ----------------------------------------------------------------------------------------

  get stageName() {
    return this.version.stages[this.step.stage].name;
  }

  async openEdit() {
    if (!(await this.load(this.version, this.step))) return this.say("the text cannot be loaded: no kernel answers");
    this.editing = true;
    this.show();
    this.area.focus();
  }

  original() {
    return `${this.version.text(this.step).lines.map(({ text }) => text).join("\n")}\n`;
  }

  showEdit() {
    const what = `${this.version.number} ${this.stageName}`;
    if (this.edited === what && !this.editBox.hidden) return this.tell(null); // somebody is typing in it
    this.edited = what;
    this.textBox.hidden = true;
    this.tools.hidden = true;
    this.editBox.hidden = false;
    const text = this.version.drafts.get(this.stageName) ?? this.original();
    this.area = make("textarea", { class: "avial-area", spellcheck: "false", wrap: "off", "aria-label": `text of ${this.stageName}, editable`, oninput: () => this.typed(), onscroll: () => this.gutterFollows(), onkeydown: (event) => this.areaKey(event) });
    this.area.value = text;
    this.gutter = make("pre", { class: "avial-gutter", "aria-hidden": "true" });
    this.problem = make("div", { class: "avial-problem", role: "alert" });
    const button = (name, title, onclick) => make("button", { type: "button", text: name, title, onclick });
    this.goButton = button("Compile from here", "verify this text and compile the later stages from it (Ctrl+Enter)", () => this.goOn());
    this.backButton = button("Revert", "restore the original text; asks first", () => this.askDiscard());
    this.question_ = make("span", { class: "avial-asking" });
    const close = button("Close", "stop editing; what you typed is kept as a draft", () => this.closeEdit());
    this.editBox.replaceChildren(
      make("div", { class: "avial-bar" }, this.goButton, this.backButton, close, this.question_),
      this.problem,
      make("div", { class: "avial-editor" }, this.gutter, this.area),
    );
    this.heading.replaceChildren(make("span", { text: `editing ${this.version.name(this.step)}` }));
    this.tell(null);
    this.numberLines();
  }

  typed() {
    this.keepDraft();
    this.numberLines();
  }

  numberLines(wrong = this.wrong) {
    const count = this.area.value.split("\n").length;
    if (count === this.numbered && wrong === this.wrong) return;
    this.wrong = wrong;
    this.numbered = count;
    let words = "";
    for (let k = 1; k <= count; k++) words += `${k === wrong ? "✗" : ""}${k}\n`;
    this.gutter.textContent = words;
  }

  gutterFollows() {
    this.gutter.scrollTop = this.area.scrollTop;
  }

  areaKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.goOn();
    else if (event.key === "Escape") this.closeEdit();
    else return event.stopPropagation();
    event.preventDefault();
    event.stopPropagation();
  }

  /** What was typed stays, whatever is shown next; the kernel has it too, for when the page goes. */
  keepDraft() {
    if (!this.editing || !this.area?.isConnected) return;
    const [version, name, text] = [this.version, this.stageName, this.area.value];
    if (text === (version.drafts.get(name) ?? this.original())) return;
    if (text === this.original()) version.drafts.delete(name);
    else version.drafts.set(name, text);
    this.keepIn(version, name);
  }

  keepIn(version, name) {
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.question({ want: "keep", version: version.number, stage: name, text: version.drafts.get(name) ?? null }), 400);
  }

  closeEdit() {
    this.keepDraft();
    this.editing = false;
    this.list();
    this.show();
    this.right.scroller.focus();
  }

  askDiscard() {
    if (this.area.value === this.original()) return this.closeEdit();
    const button = (text, onclick) => make("button", { type: "button", text, onclick });
    const no = button("Keep it", () => {
      this.question_.replaceChildren();
      this.area.focus();
    });
    const yes = button("Discard it", () => {
      this.version.drafts.delete(this.stageName);
      this.keepIn(this.version, this.stageName);
      this.area.value = this.original();
      this.question_.replaceChildren();
      this.problem.replaceChildren();
      this.numberLines(0);
      this.area.focus();
    });
    this.question_.replaceChildren(` discard what you typed in ${this.stageName}? `, yes, no);
    no.focus();
  }

  async goOn() {
    if (this.goButton.disabled) return;
    this.keepDraft();
    const [version, name, text] = [this.version, this.stageName, this.area.value];
    this.goButton.disabled = true;
    this.problem.replaceChildren();
    this.numberLines(0);
    this.say("compiling from here …");
    const answer = await this.question({ want: "resume", version: version.number, stage: name, text });
    this.goButton.disabled = false;
    if (!answer) return this.refused({ message: "no kernel answers; what you typed is kept" });
    if (answer.error) return this.refused(answer.error);
    version.drafts.delete(name); // it is in the new version
    this.keepIn(version, name);
    const made = new Version(answer.version, `edited by hand: ${name} (${answer.version})`, answer.data);
    this.versions.push(made);
    // What the edit changed, here and in every stage after it: each beside itself as it was.
    Object.assign(this, { base: `${version.number} `, mode: this.mode === "one" ? "side" : this.mode, editing: false, fresh: true });
    this.setVersion(this.versions.length - 1);
    this.lookInside();
    const run = answer.name ? `; run it with %avial run ${answer.name}` : "";
    this.say(`compiled from ${name}, edited by hand: ${plural(made.stages.length, "stage")}${run}`);
  }

  refused({ message, hint, line, column }) {
    const place = line ? `line ${line}${column ? `, column ${column}` : ""}: ` : "";
    this.problem.replaceChildren(make("b", { text: place }), message, ...(hint ? [make("p", { text: `Hint: ${hint}` })] : []));
    if (!line || !this.area.isConnected) return;
    const lines = this.area.value.split("\n");
    const from = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    this.area.focus();
    this.area.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
    this.area.scrollTop = Math.max(0, (line - 5) * ROW);
    this.numberLines(line);
    this.gutterFollows();
  }
}

function choices(select, wanted, value) {
  const key = JSON.stringify(wanted);
  if (select.wanted !== key) {
    select.wanted = key;
    select.replaceChildren(...wanted.map(([each, text]) => make("option", { value: each, text })));
  }
  select.value = wanted.some(([each]) => each === value) ? value : wanted[0][0];
}

/** `line 3`, `lines 3, 4 and 7`; of many only the first. */
function inList(lines) {
  const sorted = [...lines].sort((p, q) => p - q);
  if (sorted.length === 1) return `line ${sorted[0]}`;
  if (sorted.length > 8) return `lines ${sorted.slice(0, 7).join(", ")} and ${sorted.length - 7} more`;
  return `lines ${sorted.slice(0, -1).join(", ")} and ${sorted[sorted.length - 1]}`;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

export function mount(host, data, { ask, say } = {}) {
  const stepper = new Stepper(host, data, { ask, say });
  return { update: (next) => stepper.update(next), lose: (why) => stepper.lose(why), dispose: () => stepper.dispose() };
}
