// A predicted run with sliders: what if links, cores or memories were other ones, what on fewer
// ranks? Data and answers: plot/views/what_if.py. No dependencies.

import { element } from "./element.js";

let mounts = 0;

export function mount(host, data, { ask, say } = {}) {
  const view = new WhatIf(host, data, { ask, say });
  return { lose: (why) => view.lose(why), dispose: () => view.root.remove() };
}

class WhatIf {
  constructor(host, data, { ask, say }) {
    this.ask = ask;
    this.say = say;
    this.asking = false;
    this.moved = false;
    const id = `avial-what-if-${++mounts}`;
    this.root = element("section", "avial-what-if", { "aria-labelledby": id });
    const title = element("h4", "", { id }, data.title);
    const grid = element("div", "avial-sliders");
    this.sliders = data.sliders.map((slider, k) => this.row(grid, slider, `${id}-${k}`));
    this.back = element("button", "", { type: "button" }, "as it is");
    this.back.addEventListener("click", () => this.reset());
    this.words = element("p", "avial-answer", { role: "status" });
    this.note = element("p");
    this.picture = element("div", "avial-picture");
    this.root.append(title, grid, this.back, this.words, this.note, this.picture);
    host.append(this.root);
    this.show(data.answer);
    if (!ask) this.lose();
  }

  /** A label, a slider over the places of its values, and the value it stands at. */
  row(grid, { name, label, values, at }, id) {
    const input = element("input", "", { type: "range", id, min: 0, max: values.length - 1, step: 1, value: at });
    const shown = element("span", "avial-value");
    const slider = { name, values, at, input, shown };
    input.addEventListener("input", () => {
      this.stand(slider);
      this.change();
    });
    grid.append(element("label", "", { for: id }, label), input, shown);
    this.stand(slider);
    return slider;
  }

  stand({ input, values, shown }) {
    const words = values[input.value].shown;
    shown.textContent = words;
    input.setAttribute("aria-valuetext", words);
  }

  reset() {
    for (const slider of this.sliders) {
      slider.input.value = slider.at;
      this.stand(slider);
    }
    this.change();
  }

  /** One question at a time; where sliders were moved meanwhile, the next is of where they are. */
  async change() {
    this.moved = true;
    if (this.asking) return;
    this.asking = true;
    this.root.classList.add("avial-asking");
    try {
      while (this.moved) {
        this.moved = false;
        const values = Object.fromEntries(this.sliders.map(({ name, values, input }) => [name, values[input.value].value]));
        const answer = await this.ask({ want: "answer", values });
        if (answer.error) this.words.textContent = `✗ ${answer.error.message}`;
        else this.show(answer);
      }
    } catch (error) {
      this.lose(error.message);
    } finally {
      this.asking = false;
      this.root.classList.remove("avial-asking");
    }
  }

  show({ words, note, picture }) {
    this.words.textContent = words.join("; ");
    this.note.textContent = note;
    this.picture.innerHTML = picture; // (made and escaped by plot, as every figure is)
    this.say?.(this.words.textContent);
  }

  /** Nobody answers any more: what was answered last stays. */
  lose(why) {
    for (const { input } of this.sliders) input.disabled = true;
    this.back.disabled = true;
    if (why) this.words.textContent = `✗ The kernel does not answer: ${why}. Run the cell again.`;
  }
}
