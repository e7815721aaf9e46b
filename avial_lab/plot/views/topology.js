// A machine that can be changed: its picture, and a field for each number of it. Data and answers:
// plot/views/topology.py. No dependencies.

import { element } from "./element.js";

let mounts = 0;

export function mount(host, data, { ask, say } = {}) {
  const view = new Machine(host, data, { ask, say });
  return { lose: (why) => view.lose(why), dispose: () => view.root.remove() };
}

class Machine {
  constructor(host, data, { ask, say }) {
    this.ask = ask;
    this.say = say;
    this.id = `avial-machine-${++mounts}`;
    this.root = element("section", "avial-machine", { "aria-labelledby": this.id });
    this.words = element("h4", "", { id: this.id });
    this.picture = element("div", "avial-picture");
    this.form = element("form", "avial-fields");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.change({ want: "change", values: this.values() });
    });
    this.told = element("p", "avial-answer", { role: "status" });
    const row = element("div", "avial-buttons");
    this.set = element("button", "", { type: "submit" }, "change");
    this.back = button("as it was", () => this.change({ want: "back" }));
    const name = `${this.id}-file`;
    this.file = element("input", "", { id: name, type: "text", size: 18, spellcheck: "false" });
    this.file.value = "machine.yaml";
    this.save = button("save", () => this.change({ want: "save", file: this.file.value }));
    row.append(this.set, this.back, element("label", "", { for: name }, "file"), this.file, this.save);
    this.kinds = element("div", "avial-kinds");
    this.form.append(this.kinds, row);
    this.root.append(this.words, this.picture, this.form, this.told);
    host.append(this.root);
    this.show(data);
    if (!ask) this.lose();
  }

  show({ words, groups, picture, told }) {
    this.words.textContent = words;
    this.picture.innerHTML = picture; // (made and escaped by plot, as every figure is)
    this.inputs = new Map();
    this.kinds.replaceChildren(...groups.map((group, k) => this.kind(group, k)));
    this.told.textContent = told ?? "";
    if (told) this.say?.(told);
  }

  /** The fields of one kind of node or link. */
  kind({ title, fields }, k) {
    const box = element("fieldset");
    box.append(element("legend", "", {}, title));
    for (const { key, label, value, hint } of fields) {
      const id = `${this.id}-${k}-${key}`;
      const input = element("input", "", { id, type: "text", size: 12, title: `for example ${hint}`, spellcheck: "false" });
      input.value = value;
      this.inputs.set(key, input);
      box.append(element("label", "", { for: id }, label), input);
    }
    return box;
  }

  values() {
    return Object.fromEntries([...this.inputs].map(([key, input]) => [key, input.value]));
  }

  async change(question) {
    try {
      const answer = await this.ask(question);
      if (answer.error) this.told.textContent = `✗ ${answer.error.message}`;
      else if (answer.groups) this.show(answer);
      else this.told.textContent = answer.told;
    } catch (error) {
      this.lose(error.message);
    }
  }

  /** Nobody answers any more: the picture stays. */
  lose(why) {
    for (const part of this.form.querySelectorAll("input, button")) part.disabled = true;
    if (why) this.told.textContent = `✗ The kernel does not answer: ${why}. Run the cell again.`;
  }
}

function button(words, does) {
  const made = element("button", "", { type: "button" }, words);
  made.addEventListener("click", does);
  return made;
}
