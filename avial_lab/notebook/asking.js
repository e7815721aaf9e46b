// A view as a widget: its questions go to the kernel as messages `{id, question}` and come back as
// `{id, answer}`. Stands below the view's own module, whose `mount` it calls.

let widgets = 0;

export default {
  render({ model, el }) {
    // Several pages may show the same widget: each knows its own questions.
    const own = `${Date.now().toString(36)}-${++widgets}-`;
    const waiting = new Map();
    const gone = () => {
      for (const { reject } of waiting.values()) reject(new Error("it was restarted or ended"));
      waiting.clear();
    };
    const ask = (question) =>
      new Promise((resolve, reject) => {
        if (el.closest(".jupyter-widgets-disconnected")) return reject(new Error("it was restarted or ended"));
        const id = own + waiting.size + Math.random().toString(36).slice(2);
        waiting.set(id, { resolve, reject });
        model.send({ id, question });
      });
    const answered = (message) => {
      waiting.get(message.id)?.resolve(message.answer);
      waiting.delete(message.id);
    };
    // The page marks a widget whose kernel went; the mark is set while this event is told.
    const liveness = () => setTimeout(() => el.closest(".jupyter-widgets-disconnected") && gone());
    model.on("msg:custom", answered);
    model.on("comm_live_update", liveness);
    const view = mount(el, model.get("data"), { ask });
    return () => {
      model.off("msg:custom", answered);
      model.off("comm_live_update", liveness);
      view.dispose();
    };
  },
};
