// How a model can be divided: all configurations as a cloud and a table; one is picked, simulated,
// run. Data and answers: plot/views/parallel.py. No dependencies.

import { element } from "./element.js";

let mounts = 0;

export function mount(host, data, { ask, say } = {}) {
  const view = new Divisions(host, data, { ask, say });
  return { lose: (why) => view.lose(why), dispose: () => view.root.remove() };
}

class Divisions {
  constructor(host, data, { ask, say }) {
    this.ask = ask;
    this.say = say;
    this.rows = data.rows;
    const id = `avial-parallel-${++mounts}`;
    this.root = element("section", "avial-parallel", { "aria-labelledby": id });
    this.cloud = element("div", "avial-cloud");
    const box = element("div", "avial-rows", { tabindex: "0", role: "group", "aria-label": "configurations" });
    box.append(this.table(data.columns));
    this.told = element("p", "avial-answer", { role: "status" });
    this.go = element("button", "", { type: "button" }, "run it");
    this.go.addEventListener("click", () => this.run());
    this.go.disabled = true;
    this.picture = element("div", "avial-picture", { tabindex: "0", role: "group", "aria-label": "the picked one" });
    this.memory = element("div", "avial-memory");
    this.moves = element("ul", "avial-moves");
    this.root.append(element("h4", "", { id }, data.title), this.cloud, box, this.go, this.told, this.picture, this.memory, this.moves);
    host.append(this.root);
    this.draw();
    if (!ask) this.lose();
  }

  table(columns) {
    const table = element("table");
    const head = element("tr");
    for (const name of columns) head.append(element("th", "", { scope: "col" }, name));
    const body = element("tbody");
    this.lines = this.rows.map((row, k) => {
      const line = element("tr");
      const name = element("th", "", { scope: "row" });
      const pick = element("button", "", { type: "button", "aria-pressed": "false" }, row.words);
      pick.disabled = !row.feasible;
      pick.addEventListener("click", () => this.pick(k));
      name.append(pick);
      line.append(name, ...row.cells.map((cell) => element("td", "", {}, cell)));
      body.append(line);
      return { line, pick };
    });
    const top = element("thead");
    top.append(head);
    table.append(top, body);
    return table;
  }

  /** Time to the right, memory upwards, both by their logarithms; a point is a row. */
  draw() {
    const known = this.rows.map((row, k) => ({ row, k })).filter(({ row }) => row.seconds > 0 && row.nbytes > 0);
    this.points = new Map();
    if (!known.length) return;
    const [width, height, edge] = [640, 200, 34];
    const along = (values) => {
      const logs = values.map(Math.log);
      const [low, high] = [Math.min(...logs), Math.max(...logs)];
      return (value) => (high > low ? (Math.log(value) - low) / (high - low) : 0.5);
    };
    const x = along(known.map(({ row }) => row.seconds));
    const y = along(known.map(({ row }) => row.nbytes));
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "time against memory; the rows below say the same" });
    svg.append(shape("line", { x1: edge, y1: height - edge, x2: width - 8, y2: height - edge, class: "avial-axis" }));
    svg.append(shape("line", { x1: edge, y1: 8, x2: edge, y2: height - edge, class: "avial-axis" }));
    svg.append(shape("text", { x: width - 8, y: height - 10, "text-anchor": "end" }, "time of a step →"));
    svg.append(shape("text", { x: 14, y: height - edge, transform: `rotate(-90 14 ${height - edge})` }, "memory of a device →"));
    for (const { row, k } of known) {
      const at = { cx: edge + 10 + x(row.seconds) * (width - edge - 30), cy: height - edge - 10 - y(row.nbytes) * (height - edge - 30) };
      const point = shape("circle", { ...at, r: row.simulated ? 6 : 4, class: row.feasible ? "avial-point" : "avial-point avial-over" });
      point.append(shape("title", {}, `${row.words}: ${row.cells[1] || row.cells[0]}, ${row.cells[2]}${row.feasible ? "" : `; ${row.cells[5]}`}`));
      if (row.feasible) point.addEventListener("click", () => this.pick(k));
      this.points.set(k, point);
      svg.append(point);
    }
    this.cloud.replaceChildren(svg);
  }

  async pick(k) {
    if (!this.ask || this.asking) return;
    this.picked = k;
    this.lines.forEach(({ pick }, other) => pick.setAttribute("aria-pressed", String(other === k)));
    for (const [other, point] of this.points) point.classList.toggle("avial-picked", other === k);
    await this.answered({ want: "pick", words: this.rows[k].words }, "simulating …");
  }

  async run() {
    if (this.picked === undefined || this.asking) return;
    await this.answered({ want: "run", words: this.rows[this.picked].words }, "running …");
  }

  /** One question at a time. */
  async answered(question, meanwhile) {
    this.asking = true;
    this.go.disabled = true;
    this.told.textContent = meanwhile;
    try {
      const answer = await this.ask(question);
      if (answer.error) this.told.textContent = `✗ ${answer.error.message}`;
      else this.show(answer);
      this.go.disabled = false;
    } catch (error) {
      this.lose(error.message);
    } finally {
      this.asking = false;
    }
  }

  show({ row, words, picture, table, told }) {
    if (row) this.lines[this.picked].line.replaceChildren(this.lines[this.picked].line.firstChild, ...row.cells.map((cell) => element("td", "", {}, cell)));
    this.told.textContent = words;
    if (picture) {
      this.picture.innerHTML = picture; // (made and escaped by plot, as every picture is)
      this.memory.innerHTML = table;
      this.moves.replaceChildren(...told.map((line) => element("li", "", {}, line)));
    }
    this.say?.(words);
  }

  /** Nobody answers any more: the rows, and what was answered last, stay. */
  lose(why) {
    for (const { pick } of this.lines) pick.disabled = true;
    this.go.disabled = true;
    this.ask = undefined;
    if (why) this.told.textContent = `✗ The kernel does not answer: ${why}. Run the cell again.`;
  }
}

function shape(name, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}
