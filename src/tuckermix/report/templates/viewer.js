// ---- one sample, large
const viewer = get("viewer");
const FRAME_MS = 200;
const still = matchMedia("(prefers-reduced-motion: reduce)");
let viewed = -1, sequence = [], films = null;
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
// A video is one row of frames, of which a window shows one; time or the slider moves it.
// Videos play; the slices of a volume, which lie below its three middle ones, wait for the slider.
function film(image, box) {
  const count = data.frames, gap = 2, slider = get("v-frame"), plays = data.kind === "video";
  const wide = (image.naturalWidth - (count - 1) * gap) / count;
  const room = Math.min(box.clientWidth / wide, (plays ? 420 : 260) / image.naturalHeight);
  const times = room >= 2 ? Math.floor(room) : Math.min(1, room);
  const frame = make("div", "film");
  frame.style.width = wide * times + "px";
  frame.style.height = image.naturalHeight * times + "px";
  image.style.width = image.naturalWidth * times + "px";
  frame.append(image);
  if (plays) box.replaceChildren(frame); else box.append(frame);
  slider.max = count;
  showFrame = (number) => {
    slider.value = number;
    get("v-number").textContent = number + " of " + count;
    image.style.transform = "translateX(" + -(number - 1) * (wide + gap) * times + "px)";
  };
  showFrame(plays ? 1 : Math.ceil(count / 2));
  get("v-size").textContent = !plays ? data.caption + ". The slider goes along the first." : wide + " × " + image.naturalHeight + " pixels";
  get("v-player").hidden = count < 2;
  if (plays && count > 1 && !still.matches) play();
}
get("v-play").addEventListener("click", () => turning ? halt() : play());
get("v-frame").addEventListener("input", () => { halt(); showFrame(Number(get("v-frame").value)); });

function large(place) {
  const box = get("v-picture"), note = get("v-size");
  films ??= read("films");
  halt();
  get("v-player").hidden = true;
  note.textContent = data.caption;
  const moving = films[place] && make("img"), shown = moving && data.kind === "video" ? moving : picture(place, 1600);
  if (served && shown.tagName === "IMG" && data.base !== null && !moving) shown.src = address(place, 1600);
  box.replaceChildren(shown);
  if (moving) {
    moving.addEventListener("load", () => { if (viewed === place && viewer.open) film(moving, box); });
    moving.alt = (data.kind === "video" ? "Frames of " : "Slices of ") + name(place);
    moving.src = films[place];
    if (shown === moving) return;
  }
  if (shown.tagName !== "IMG") return;
  shown.alt = "Picture of " + name(place);
  shown.loading = "eager";
  const fit = () => {
    if (viewed !== place || !viewer.open) return;
    // Small ones are enlarged by whole numbers, so that each pixel stays a square.
    const room = Math.min(box.clientWidth / shown.naturalWidth, 0.62 * innerHeight / shown.naturalHeight);
    const small = exact || Math.max(shown.naturalWidth, shown.naturalHeight) < 64;
    shown.style.width = Math.round(shown.naturalWidth * (small ? Math.max(1, Math.floor(room)) : room)) + "px";
    shown.classList.toggle("pixels", small);
  };
  if (shown.complete && shown.naturalWidth) fit(); else shown.addEventListener("load", fit);
}
function view(place) {
  viewed = place;
  get("v-name").textContent = name(place);
  get("v-what").textContent = noteOf(place);
  const link = file(place);
  get("v-file").hidden = link === null || served;
  if (link !== null) get("v-file").href = link;
  const here = sequence.indexOf(place);
  get("v-before").disabled = here <= 0;
  get("v-after").disabled = here < 0 || here === sequence.length - 1;
  get("v-out").textContent = state.out[place] ? "Take back" : "Mark as wrong";
  if (!viewer.open) viewer.showModal();
  large(place);
  get("v-near").replaceChildren(...similar([place], 8).map((other) => {
    const node = button("", name(other), () => open(other, similar([place], 8)), "small");
    node.style.setProperty("--ratio", ratio(other));
    node.append(picture(other));
    return node;
  }));
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
get("v-move").addEventListener("click", () => chooseCluster([viewed]));
get("v-out").addEventListener("click", () => { act(state.out[viewed] ? takeBack : setAside, [viewed]); view(viewed); });
get("v-like").addEventListener("click", () => { viewer.close(); findSimilar([viewed]); });
viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
viewer.addEventListener("close", () => {
  halt();
  const open = document.querySelector('section:not([hidden]) .tile[data-place="' + viewed + '"]');
  if (open) focusOn(open);
});
viewer.addEventListener("keydown", (event) => {
  if (event.target === get("v-frame") || event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), m: () => chooseCluster([viewed]),
    x: () => get("v-out").click(), f: () => get("v-like").click(),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});
