// A run's view as a widget: what the kernel says of the run is its `state`. Stands below the view's
// own module, whose `mount` it calls, and below graph.js as `graph`.

export default {
  render({ model, el }) {
    const view = mount(el, { ...model.get("data"), state: model.get("state") }, { graph });
    const news = () => view.update({ state: model.get("state") });
    model.on("change:state", news);
    return () => {
      model.off("change:state", news);
      view.dispose();
    };
  },
};
