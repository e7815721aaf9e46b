// A view as a widget: its questions go to the kernel as messages `{id, question}` and come back as
// `{id, answer}`. Stands below the view's own module, whose `mount` it calls.

export default {
  render({ model, el }) {
    // Several pages may show the same widget: each knows its own questions.
    const own = Math.random().toString(36).slice(2);
    let asked = 0;
    const waiting = new Map();
    const why = "it was restarted or ended";
    let lost = false;
    const gone = () => {
      lost = true;
      for (const { reject } of waiting.values()) reject(new Error(why));
      waiting.clear();
      view.lose?.(why);
    };
    const ask = (question) =>
      new Promise((resolve, reject) => {
        if (lost) return reject(new Error(why));
        const id = `${own}-${++asked}`;
        waiting.set(id, { resolve, reject });
        model.send({ id, question });
      });
    const answered = (message) => {
      waiting.get(message.id)?.resolve(message.answer);
      waiting.delete(message.id);
    };
    // JupyterLab's own word for it; elsewhere a question stays open until somebody answers.
    const status = model.widget_manager?.kernel?.statusChanged;
    const heard = (_, now) => ["restarting", "autorestarting", "terminating", "dead"].includes(now) && gone();
    status?.connect(heard);
    model.on("msg:custom", answered);
    el.classList.add("avial-widget"); // alive: what was saved of it is not shown
    const view = mount(el, model.get("data"), { ask });
    return () => {
      model.off("msg:custom", answered);
      status?.disconnect(heard);
      view.dispose();
    };
  },
};
