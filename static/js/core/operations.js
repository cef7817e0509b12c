/**
 * The operations page: asks for its changing part every two seconds while it is looked at.
 */

const EVERY_MS = 2000;
const live = document.getElementById("operations-live");
const lost = document.getElementById("operations-lost");

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { "HX-Request": "true" } });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.text());
    lost.hidden = true;
  } catch {
    lost.hidden = false;
  }
}

/** Puts the new part in place of the old; the focus and how far a table is scrolled stay. */
function show(html) {
  const focused = live.contains(document.activeElement) ? document.activeElement : null;
  const label = focused?.getAttribute("aria-labelledby");
  const scrolled = [...live.querySelectorAll(".op-scroll")].map((one) => one.scrollLeft);
  const page = new DOMParser().parseFromString(html, "text/html");
  live.replaceChildren(...page.body.childNodes);
  live.querySelectorAll(".op-scroll").forEach((one, i) => (one.scrollLeft = scrolled[i] ?? 0));
  if (focused?.id) document.getElementById(focused.id)?.focus({ preventScroll: true });
  else if (label) {
    live.querySelector(`.op-scroll[aria-labelledby="${label}"]`)?.focus({ preventScroll: true });
  }
}

async function forever() {
  for (;;) {
    await new Promise((resume) => setTimeout(resume, EVERY_MS));
    await refresh();
  }
}

document.addEventListener("visibilitychange", refresh);
forever();
document.documentElement.dataset.ready = "true";
