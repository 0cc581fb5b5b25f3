"use strict";
(function () {
  const get = (id) => document.getElementById(id);
  const data = JSON.parse(get("data").textContent);
  const field = get("field"), canvas = get("canvas"), ring = get("ring"), thumb = get("thumb");
  // A mark begins with its position, "M x y": the one place where positions are stored.
  const at = Array.from(document.querySelectorAll("#marks path"), (mark) =>
    mark.getAttribute("d").match(/-?\d+/g).slice(0, 2).map(Number));
  const REACH = 24;  // a mark this many pixels away still answers to the pointer or finger
  const THUMB = 128;
  let current = -1;
  get("hint").textContent =
    "Point at a mark, tap it, or use the arrow keys on the map to see the sample and its soft labels.";

  const chosen = () => document.querySelector(".filter input:checked").value;
  const visible = (index) => chosen() === "" || String(data.labels[index]) === chosen();

  function show(index) {
    if (index === current || index < 0) return;
    current = index;
    const [width, height, columns, rows] = data.sheet;
    const scale = THUMB / Math.max(width, height);
    thumb.style.width = width * scale + "px";
    thumb.style.height = height * scale + "px";
    thumb.style.backgroundSize = width * columns * scale + "px " + height * rows * scale + "px";
    thumb.style.backgroundPosition =
      -(index % columns) * width * scale + "px " + -Math.floor(index / columns) * height * scale + "px";
    get("who").textContent = data.names[index];
    get("what").textContent =
      "Cluster " + data.labels[index] + (data.truth ? ", class " + data.truth[index] : "");
    const list = get("soft");
    list.replaceChildren();
    for (let i = 0; i < data.soft[index].length; i += 2) {
      const cluster = data.soft[index][i], percent = data.soft[index][i + 1];
      const item = document.createElement("li");
      const name = document.createElement("span"), bar = document.createElement("span");
      const fill = document.createElement("i"), value = document.createElement("b");
      item.className = "k" + cluster;
      name.textContent = "cluster " + cluster;
      fill.style.width = percent + "%";
      value.textContent = percent + " %";
      bar.append(fill);
      item.append(name, bar, value);
      list.append(item);
    }
    ring.setAttribute("cx", at[index][0]);
    ring.setAttribute("cy", at[index][1]);
    get("hint").hidden = true;
    get("detail").hidden = false;
  }

  function nearest(x, y, reach, fits) {
    let best = -1, least = reach * reach;
    at.forEach(([a, b], index) => {
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least && visible(index) && (!fits || fits(a - x, b - y))) {
        least = distance;
        best = index;
      }
    });
    return best;
  }

  function point(event) {
    const box = canvas.getBoundingClientRect(), view = canvas.viewBox.baseVal;
    const scale = view.width / box.width;
    show(nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale, REACH * scale));
  }
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);

  const AHEAD = {
    ArrowRight: (x, y) => x > 0 && Math.abs(y) <= x, ArrowLeft: (x, y) => x < 0 && Math.abs(y) <= -x,
    ArrowDown: (x, y) => y > 0 && Math.abs(x) <= y, ArrowUp: (x, y) => y < 0 && Math.abs(x) <= -y,
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      get("all").checked = true;
    } else if (AHEAD[event.key]) {
      event.preventDefault();
      if (current < 0 || !visible(current)) show(at.findIndex((_, index) => visible(index)));
      else show(nearest(at[current][0], at[current][1], Infinity, AHEAD[event.key]));
    }
  });
  document.querySelectorAll("button.link").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      get("f" + button.value).checked = true;
      get("map").scrollIntoView();
    });
  });
})();
