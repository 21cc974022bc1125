// Everything begins here: nothing is rendered before it is looked at.
document.body.append(told);
document.querySelectorAll("main .scroll > table").forEach((table) =>
  framed(table.parentElement).after(copies(table)));

const rooms = new Map();

function room(corpus) {
  if (!rooms.has(corpus)) {
    const host = [...document.querySelectorAll(".questions")]
      .find((found) => found.dataset.corpus === corpus);
    if (!host) return null;
    rooms.set(corpus, new Room(host));
  }
  return rooms.get(corpus);
}

// #q/CORPUS/QUESTION opens a question, or says that there is none; anything else closes it.
function follow() {
  const [kind, corpus = "", id = ""] = location.hash.slice(1).split("/");
  if (kind !== "q") { view.shut(); return; }
  let wanted = id;
  try { wanted = decodeURIComponent(id); } catch { /* no address of ours: told as it stands */ }
  const found = room(corpus);
  if (!found || !found.show(wanted)) view.missing(corpus, wanted, found);
}

const watch = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watch.unobserve(entry.target);
    room(entry.target.dataset.corpus);
  }
}, { rootMargin: "800px" });
document.querySelectorAll(".questions").forEach((host) => watch.observe(host));
// Paper is not scrolled: what was never looked at would print as nothing.
addEventListener("beforeprint", () => document.querySelectorAll(".questions")
  .forEach((host) => room(host.dataset.corpus)));
addEventListener("hashchange", follow);
follow();
