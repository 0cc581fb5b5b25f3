// ---- the tray: what was set aside, what is unusual, what is there twice
function drawTray() {
  const out = Object.keys(state.out).map(Number);
  fill(get("t-out"), out, { caption: true });
  fill(get("t-strange"), data.strange, { caption: true });
  for (const [id, count] of [["n-out", out.length], ["n-strange", data.strange.length], ["n-twins", data.twins.length]]) {
    get(id).textContent = count ? count.toLocaleString("en") : "none";
  }
  get("t-twins").replaceChildren(...data.twins.map((places, index) => {
    const group = make("div", "grid twins");
    group.setAttribute("role", "listbox");
    group.setAttribute("aria-multiselectable", "true");
    group.setAttribute("aria-label", "Near-duplicates, group " + (index + 1));
    fill(group, places, { caption: true });
    return group;
  }));
}
