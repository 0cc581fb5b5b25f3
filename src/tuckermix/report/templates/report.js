"use strict";
(function () {
  const get = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const data = JSON.parse(get("data").textContent);
  let full = null;  // megabytes of pictures: unpacked when the first is asked for

  // ---- samples, by their place in the list; the map knows some of them by the number of the mark
  const n = data.sure.length;
  const labels = data.runs[0].flatMap((label, run) => Array(data.runs[1][run]).fill(label));
  const name = (place) => data.names ? data.names[place] : "sample " + data.ids[place];
  const sure = (place) => Math.round(data.sure[place] / 10) + " %";
  const kind = (place) => data.truth ? data.classes[data.truth[place]] : "";
  const outliers = new Set(data.outliers);
  const noted = (place) => (outliers.has(place) ? ", outlier" : "") +
    (kind(place) === "" ? "" : ", class " + kind(place));
  const placeOf = (mark) => data.marks ? data.marks[mark] : mark;
  const marked = new Map(data.marks ? data.marks.map((place, mark) => [place, mark]) : []);
  const markOf = (place) => data.marks ? marked.get(place) ?? -1 : place;
  const unlinked = new Set(data.unlinked);
  const file = (place) => data.base === null || unlinked.has(place) ? null :
    data.base + name(place).split("/").map(encodeURIComponent).join("/");
  const selected = new Set();

  function sprite(node, mark, side) {
    const [width, height, columns, rows] = data.sheet;
    const scale = side / Math.max(width, height);
    node.style.width = width * scale + "px";
    node.style.height = height * scale + "px";
    node.style.backgroundSize = width * columns * scale + "px " + height * rows * scale + "px";
    node.style.backgroundPosition =
      -(mark % columns) * width * scale + "px " + -Math.floor(mark / columns) * height * scale + "px";
  }

  function softLabels(list, place) {
    const mark = markOf(place);
    const soft = mark < 0 ? [labels[place], Math.round(data.sure[place] / 10)] : data.soft[mark];
    list.replaceChildren();
    for (let i = 0; i < soft.length; i += 2) {
      const item = make("li", "k" + soft[i]), bar = make("span"), fill = make("i");
      fill.style.width = soft[i + 1] + "%";
      bar.append(fill);
      item.append(make("span", "", "cluster " + soft[i]), bar, make("b", "", soft[i + 1] + " %"));
      list.append(item);
    }
  }
  const where = (place) =>
    "Cluster " + labels[place] + noted(place);

  // ---- the selection
  function keep(places, wanted) {
    for (const place of places) {
      if (wanted) selected.add(place); else selected.delete(place);
    }
    for (const tile of get("list").children) {
      tile.setAttribute("aria-selected", selected.has(Number(tile.dataset.place)));
    }
    told();
  }
  const toggle = (place) => keep([place], !selected.has(place));

  function told() {
    const some = selected.size;
    get("count").textContent = listed.length.toLocaleString("en") + " of " + n.toLocaleString("en") +
      (n === 1 ? " sample" : " samples") + (some ? ", " + some.toLocaleString("en") + " selected" : "");
    get("none").disabled = !some;
    get("every").disabled = !listed.length;
    get("save").disabled = !some && !listed.length;
    get("save").textContent = some
      ? "Download " + some.toLocaleString("en") + (some === 1 ? " selected name" : " selected names")
      : "Download these " + listed.length.toLocaleString("en") + " names";
    for (const [button, place] of [["keep", current], ["v-keep", viewed]]) {
      get(button).setAttribute("aria-pressed", selected.has(place));
      get(button).textContent = selected.has(place) ? "Selected" : "Select";
    }
  }

  // As the library writes CSV: what a spreadsheet takes for a formula gets an apostrophe in front.
  function cell(value) {
    const text = /^'*[=+\-@\t\r\n＝＋－＠]/.test(value) ? "'" + value : value;
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }
  get("save").addEventListener("click", () => {
    const places = selected.size ? Array.from(selected).sort((a, b) => a - b) : listed;
    const head = ["name", "label"].concat(data.truth ? ["class"] : []);
    const rows = places.map((place) =>
      [name(place), outliers.has(place) ? "-1" : String(labels[place])]
        .concat(data.truth ? [kind(place)] : []));
    // A label is a number, and -1 no formula.
    const line = ([first, label, ...rest]) => [cell(first), label, ...rest.map(cell)].join(",") + "\n";
    const text = [head, ...rows].map(line).join("");
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = "names.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  get("none").addEventListener("click", () => keep(Array.from(selected), false));
  get("every").addEventListener("click", () => keep(listed, true));

  // ---- one sample in full
  const viewer = get("viewer");
  let viewed = -1, sequence = [];
  // A video is one row of frames, of which a window shows one; time or the slider moves it.
  const FRAME_MS = 200;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let turning = 0, showFrame = null;
  function halt() {
    clearInterval(turning);
    turning = 0;
    get("v-play").textContent = "Play";
    get("v-play").setAttribute("aria-pressed", "false");
  }
  function play() {
    const slider = get("v-frame"), last = Number(slider.max);
    turning = setInterval(() => showFrame(Number(slider.value) % last + 1), FRAME_MS);
    get("v-play").textContent = "Pause";
    get("v-play").setAttribute("aria-pressed", "true");
  }
  function film(image, box) {
    const [count, gap] = data.played, slider = get("v-frame");
    const width = (image.naturalWidth - (count - 1) * gap) / count;
    const room = Math.min(box.clientWidth / width, 420 / image.naturalHeight);
    const times = room >= 2 ? Math.floor(room) : Math.min(1, room);
    const frame = make("div", "film");
    frame.style.width = width * times + "px";
    frame.style.height = image.naturalHeight * times + "px";
    image.style.width = image.naturalWidth * times + "px";
    image.classList.toggle("smooth", times <= 1);
    frame.append(image);
    box.replaceChildren(frame);
    slider.max = count;
    showFrame = (number) => {
      slider.value = number;
      get("v-number").textContent = number + " of " + count;
      image.style.transform = "translateX(" + -(number - 1) * (width + gap) * times + "px)";
    };
    showFrame(1);
    get("v-size").textContent = width + " × " + image.naturalHeight + " pixels";
    get("v-player").hidden = count < 2;
    if (count > 1 && !still.matches) play();
  }
  get("v-play").addEventListener("click", () => turning ? halt() : play());
  get("v-frame").addEventListener("input", () => {
    halt();
    showFrame(Number(get("v-frame").value));
  });

  function picture(place) {
    full ??= JSON.parse(get("full").textContent);
    const box = get("v-picture"), mark = markOf(place), note = get("v-size");
    halt();
    get("v-player").hidden = true;
    box.replaceChildren();
    note.textContent = "";
    if (full[place]) {
      const image = make("img");
      image.alt = "Picture of " + name(place);
      image.addEventListener("load", () => {
        if (viewed !== place || !viewer.open) return;
        if (data.played.length) {
          film(image, box);
          return;
        }
        note.textContent = data.caption ||
          image.naturalWidth + " × " + image.naturalHeight + " pixels";
        // Small ones are enlarged by whole numbers, so that each pixel stays a square.
        const room = Math.min(box.clientWidth / image.naturalWidth, 480 / image.naturalHeight);
        const times = room >= 2 ? Math.floor(room) : Math.min(1, room);
        image.width = Math.round(image.naturalWidth * times);
        image.classList.toggle("smooth", times <= 1);
      });
      image.src = full[place];
      if (!data.played.length) box.append(image);
    } else if (mark >= 0) {
      const small = make("div", "sprite");
      small.setAttribute("role", "img");
      small.setAttribute("aria-label", "Picture of " + name(place));
      const times = Math.max(1, Math.floor(320 / Math.max(data.sheet[0], data.sheet[1])));
      sprite(small, mark, times * Math.max(data.sheet[0], data.sheet[1]));
      box.append(small);
      if (Object.keys(full).length) {
        note.textContent = "A thumbnail: this page holds " + get("full").dataset.megabytes +
          " MB of pictures in full, and this one is not among them.";
      }
    } else {
      note.textContent = "This page does not hold the picture of this sample.";
    }
  }
  function view(place) {
    viewed = place;
    get("v-name").textContent = name(place);
    get("v-what").textContent = where(place);
    softLabels(get("v-soft"), place);
    const link = file(place);
    get("v-file").hidden = link === null;
    if (link !== null) get("v-file").href = link;
    const here = sequence.indexOf(place);
    get("v-before").disabled = here <= 0;
    get("v-after").disabled = here < 0 || here === sequence.length - 1;
    if (!viewer.open) viewer.showModal();
    picture(place);
    told();
  }
  function open(place, among) {
    sequence = among;
    view(place);
  }
  function step(by) {
    const next = sequence[sequence.indexOf(viewed) + by];
    if (next !== undefined) view(next);
  }
  get("v-before").addEventListener("click", () => step(-1));
  get("v-after").addEventListener("click", () => step(1));
  get("v-keep").addEventListener("click", () => toggle(viewed));
  get("v-close").addEventListener("click", () => viewer.close());
  viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
  viewer.addEventListener("close", halt);
  viewer.addEventListener("keydown", (event) => {
    if (event.target === get("v-frame")) return;  // there the arrows turn to the next frame
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  document.querySelectorAll("ul.members").forEach((row) => {
    const places = Array.from(row.querySelectorAll("button"), (button) => Number(button.value));
    row.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) open(Number(button.value), places);
    });
  });

  // ---- the list: tiles are made as they come into sight
  const list = get("list"), scroller = get("scroller");
  const BATCH = 120;
  const TILE = 96;
  let listed = [], active = 0;
  const smaller = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  const byName = new Intl.Collator("en", { numeric: true }).compare;
  const ORDERS = {
    sure: (a, b) => data.sure[b] - data.sure[a] || a - b,
    doubt: (a, b) => data.sure[a] - data.sure[b] || a - b,
    name: (a, b) => byName(name(a), name(b)) || smaller(a, b),
  };
  function tile(index) {
    const place = listed[index], mark = markOf(place);
    const node = make("div", "tile k" + labels[place]);
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", selected.has(place));
    node.setAttribute("aria-setsize", listed.length);
    node.setAttribute("aria-posinset", index + 1);
    node.dataset.place = place;
    node.dataset.index = index;
    node.tabIndex = index === active ? 0 : -1;
    const frame = make("span", "frame");
    if (mark >= 0) {
      const small = make("span", "sprite");
      sprite(small, mark, TILE);
      frame.append(small);
    }
    const tick = make("span", "tick");
    tick.setAttribute("aria-hidden", "true");
    const note = "cluster " + labels[place] + ", " + sure(place) + noted(place);
    node.append(frame, tick, make("span", "name", name(place)), make("span", "note", note));
    return node;
  }
  function more(least) {
    const wanted = Math.min(listed.length, Math.max(least ?? 0, list.childElementCount + BATCH));
    const fresh = document.createDocumentFragment();
    for (let index = list.childElementCount; index < wanted; index += 1) fresh.append(tile(index));
    list.append(fresh);
  }
  function refresh() {
    const cluster = get("which").value, part = get("search").value.trim().toLowerCase();
    listed = [];
    for (let place = 0; place < n; place += 1) {
      if (cluster === "outliers" ? !outliers.has(place) :
        cluster !== "" && labels[place] !== Number(cluster)) continue;
      if (part && !name(place).toLowerCase().includes(part)) continue;
      listed.push(place);
    }
    listed.sort(ORDERS[get("order").value]);
    active = 0;
    list.replaceChildren();
    list.hidden = !listed.length;
    scroller.scrollTop = 0;
    more();
    told();
  }
  scroller.addEventListener("scroll", () => {
    if (scroller.scrollTop + 2 * scroller.clientHeight > scroller.scrollHeight) more();
  });
  function goTo(index) {
    if (index < 0 || index >= listed.length) return;
    if (index >= list.childElementCount) more(index + 1);
    list.children[active].tabIndex = -1;
    active = index;
    list.children[active].tabIndex = 0;
    list.children[active].focus();
  }
  function columns() {
    const tops = Array.from(list.children).slice(0, 40).map((node) => node.offsetTop);
    const next = tops.findIndex((top) => top > tops[0]);
    return next < 0 ? tops.length : next;
  }
  list.addEventListener("click", (event) => {
    const node = event.target.closest(".tile");
    if (!node) return;
    const index = Number(node.dataset.index), place = Number(node.dataset.place);
    if (event.shiftKey) {
      const [from, to] = [Math.min(active, index), Math.max(active, index)];
      keep(listed.slice(from, to + 1), true);
    } else if (event.target.closest(".tick") || event.ctrlKey || event.metaKey) {
      toggle(place);
    } else {
      open(place, listed);
    }
    goTo(index);
  });
  list.addEventListener("keydown", (event) => {
    const moves = {
      ArrowLeft: active - 1, ArrowRight: active + 1, ArrowUp: active - columns(),
      ArrowDown: active + columns(), Home: 0, End: listed.length - 1,
    };
    if (event.key in moves) goTo(moves[event.key]);
    else if (event.key === " ") toggle(listed[active]);
    else if (event.key === "Enter") open(listed[active], listed);
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) keep(listed, true);
    else return;
    event.preventDefault();
  });
  get("which").addEventListener("change", refresh);
  get("order").addEventListener("change", refresh);
  get("search").addEventListener("input", refresh);
  document.querySelectorAll("button.list").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      get("which").value = button.value;
      get("search").value = "";
      refresh();
      get("members").scrollIntoView();
      get("which").focus({ preventScroll: true });
    });
  });

  // ---- the map
  const field = get("field"), canvas = get("canvas"), ring = get("ring");
  const marks = Array.from(document.querySelectorAll("#marks path"));
  // A mark begins with its position, "M x y": the one place where positions are stored.
  const at = marks.map((mark) => mark.getAttribute("d").match(/-?\d+/g).slice(0, 2).map(Number));
  const whole = canvas.viewBox.baseVal, WIDTH = whole.width, HEIGHT = whole.height;
  const REACH = 24;  // a mark this many pixels away still answers to the pointer or finger
  const PANEL = 208;
  const MAX_ZOOM = 32;
  const ZOOM_STEP = 1.6;
  const MOST_PICTURES = 80;  // in view, so that they hardly cover each other
  const SMALL = 44;
  let current = -1, zoom = 1, left = 0, top = 0, drawn = 1, waiting = false;
  get("hint").textContent =
    "Point at a mark, tap it, or use the arrow keys on the map to see the sample and its soft labels.";

  const chosen = () => document.querySelector(".filter input:checked").value;
  const visible = (mark) => chosen() === "" || String(labels[placeOf(mark)]) === chosen();
  const inView = (mark) => at[mark][0] >= left && at[mark][0] <= left + WIDTH / zoom &&
    at[mark][1] >= top && at[mark][1] <= top + HEIGHT / zoom;

  function show(mark) {
    if (mark < 0 || placeOf(mark) === current) return;
    current = placeOf(mark);
    sprite(get("thumb"), mark, PANEL);
    get("who").textContent = name(current);
    get("what").textContent = where(current);
    softLabels(get("soft"), current);
    ring.setAttribute("cx", at[mark][0]);
    ring.setAttribute("cy", at[mark][1]);
    get("hint").hidden = true;
    get("detail").hidden = false;
    told();
  }

  function nearest(x, y, reach, fits) {
    let best = -1, least = reach * reach;
    at.forEach(([a, b], mark) => {
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least && visible(mark) && (!fits || fits(a - x, b - y))) {
        least = distance;
        best = mark;
      }
    });
    return best;
  }

  // Marks grow much slower than the map: what lay on one heap comes apart.
  function outline(label, size) {
    const corners = data.shapes[((label % data.shapes.length) + data.shapes.length) % data.shapes.length];
    const short = (value) => String(Math.round(100 * value) / 100);
    if (!corners.length) {
      const r = short(size), d = short(2 * size);
      return "m-" + r + " 0a" + r + " " + r + " 0 1 0 " + d + " 0a" + r + " " + r + " 0 1 0-" + d + " 0z";
    }
    let path = "", x = 0, y = 0;
    corners.forEach(([a, b], index) => {
      path += (index ? "l" : "m") + short(a * size - x) + " " + short(b * size - y);
      [x, y] = [a * size, b * size];
    });
    return path + "z";
  }
  function draw() {
    waiting = false;
    canvas.setAttribute("viewBox", [left, top, WIDTH / zoom, HEIGHT / zoom].join(" "));
    canvas.style.setProperty("--zoom", zoom);
    field.classList.toggle("near", zoom > 1);
    get("farther").disabled = get("whole").disabled = zoom === 1;
    get("closer").disabled = zoom === MAX_ZOOM;
    if (drawn !== zoom) {
      drawn = zoom;
      const shapes = new Map();
      marks.forEach((mark, index) => {
        const label = labels[placeOf(index)];
        if (!shapes.has(label)) shapes.set(label, outline(label, data.size / zoom ** 0.7));
        mark.setAttribute("d", "M" + at[index].join(" ") + shapes.get(label));
      });
      document.querySelectorAll("#numbers [data-aside]").forEach((text) =>
        text.setAttribute("y", text.dataset.y - text.dataset.aside / zoom));
    }
    const inside = zoom === 1 ? [] : at.flatMap((_, mark) => inView(mark) && visible(mark) ? [mark] : []);
    const few = inside.length <= MOST_PICTURES ? inside : [];
    get("pictures").replaceChildren(...few.map((mark) => {
      const small = make("span", "sprite k" + labels[placeOf(mark)]);
      sprite(small, mark, SMALL);
      small.style.left = 100 * (at[mark][0] - left) * zoom / WIDTH + "%";
      small.style.top = 100 * (at[mark][1] - top) * zoom / HEIGHT + "%";
      return small;
    }));
  }
  function look(x, y, times) {
    zoom = Math.min(MAX_ZOOM, Math.max(1, times));
    left = Math.min(WIDTH - WIDTH / zoom, Math.max(0, x));
    top = Math.min(HEIGHT - HEIGHT / zoom, Math.max(0, y));
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  }
  // What lies under (x, y) stays there.
  function zoomAt(x, y, factor) {
    const times = Math.min(MAX_ZOOM, Math.max(1, zoom * factor));
    look(x - (x - left) * zoom / times, y - (y - top) * zoom / times, times);
  }
  function zoomBy(factor) {
    const mark = current < 0 ? -1 : markOf(current);
    if (mark >= 0 && inView(mark)) zoomAt(at[mark][0], at[mark][1], factor);
    else zoomAt(left + WIDTH / zoom / 2, top + HEIGHT / zoom / 2, factor);
  }
  function position(event) {
    const box = canvas.getBoundingClientRect();
    return [left + (event.clientX - box.left) / box.width * WIDTH / zoom,
      top + (event.clientY - box.top) / box.height * HEIGHT / zoom];
  }
  const units = () => WIDTH / zoom / canvas.getBoundingClientRect().width;

  const fingers = new Map();
  let moved = false;
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    moved = false;
    canvas.setPointerCapture(event.pointerId);
    show(nearest(...position(event), REACH * units()));
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      show(nearest(...position(event), REACH * units()));
      return;
    }
    const now = [event.clientX, event.clientY];
    const shift = [now[0] - before[0], now[1] - before[1]];
    if (fingers.size === 1) {
      if (!moved && Math.hypot(...shift) < 5) return;
      moved = true;
      look(left - shift[0] * units(), top - shift[1] * units(), zoom);
    } else {
      const other = Array.from(fingers).find(([id]) => id !== event.pointerId)[1];
      const apart = (point) => Math.max(1, Math.hypot(point[0] - other[0], point[1] - other[1]));
      moved = true;
      zoomAt(...position({ clientX: other[0], clientY: other[1] }), apart(now) / apart(before));
    }
    fingers.set(event.pointerId, now);
  });
  const ofCluster = (place) => labels.flatMap((label, other) => label === labels[place] ? [other] : []);
  canvas.addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    if (moved || event.pointerType === "touch") return;
    const mark = nearest(...position(event), REACH * units());
    if (mark >= 0) open(placeOf(mark), ofCluster(placeOf(mark)));
  });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  field.addEventListener("wheel", (event) => {
    // Without a click on the map before, the wheel moves the page, as everywhere else.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== field) return;
    event.preventDefault();
    zoomAt(...position(event), Math.exp(-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 100) / 250));
  }, { passive: false });
  get("closer").addEventListener("click", () => zoomBy(ZOOM_STEP));
  get("farther").addEventListener("click", () => zoomBy(1 / ZOOM_STEP));
  get("whole").addEventListener("click", () => look(0, 0, 1));
  get("enlarge").addEventListener("click", () => open(current, ofCluster(current)));
  get("keep").addEventListener("click", () => toggle(current));
  get("inview").addEventListener("click", () => {
    keep(at.flatMap((_, mark) => inView(mark) && visible(mark) ? [placeOf(mark)] : []), true);
    get("members").scrollIntoView();
  });

  const AHEAD = {
    ArrowRight: (x, y) => x > 0 && Math.abs(y) <= x, ArrowLeft: (x, y) => x < 0 && Math.abs(y) <= -x,
    ArrowDown: (x, y) => y > 0 && Math.abs(x) <= y, ArrowUp: (x, y) => y < 0 && Math.abs(x) <= -y,
  };
  function walk(key) {
    const from = current < 0 ? -1 : markOf(current);
    if (from < 0 || !visible(from)) show(at.findIndex((_, mark) => visible(mark)));
    else show(nearest(at[from][0], at[from][1], Infinity, AHEAD[key]));
    const mark = markOf(current);
    if (mark >= 0 && !inView(mark)) {
      look(at[mark][0] - WIDTH / zoom / 2, at[mark][1] - HEIGHT / zoom / 2, zoom);
    }
  }
  field.addEventListener("keydown", (event) => {
    const acts = {
      "+": () => zoomBy(ZOOM_STEP), "=": () => zoomBy(ZOOM_STEP), "-": () => zoomBy(1 / ZOOM_STEP),
      "0": () => look(0, 0, 1), Escape: () => { get("all").checked = true; look(left, top, zoom); },
      Enter: () => { if (current >= 0) open(current, ofCluster(current)); },
      " ": () => { if (current >= 0) toggle(current); },
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (AHEAD[event.key]) walk(event.key);
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault();
  });
  document.querySelectorAll(".filter input").forEach((input) =>
    input.addEventListener("change", () => look(left, top, zoom)));
  document.querySelectorAll("button.show").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      get("f" + button.value).checked = true;
      look(0, 0, 1);
      get("map").scrollIntoView();
    });
  });

  for (const id of ["members", "zoom", "mapside"]) get(id).hidden = false;
  document.documentElement.classList.add("live");
  draw();
  refresh();
})();
