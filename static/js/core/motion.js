/** Motion that explains, and stops at once when asked to. */

/** True when the reader asked for less motion. */
export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Calls `draw(share)` each frame for `ms`, share from 0 to 1; an aborted signal jumps to the end. */
export function tween(ms, signal, draw) {
  return new Promise((resolve) => {
    const start = performance.now();
    let over = false;
    const frame = (now) => {
      if (over) return; // the abort came first and has drawn the end
      const share = signal.aborted ? 1 : Math.min(1, (now - start) / ms);
      draw(share);
      over = share >= 1;
      if (over) resolve();
      else requestAnimationFrame(frame);
    };
    signal.addEventListener("abort", frame, { once: true });
    if (signal.aborted) frame(start);
    else requestAnimationFrame(frame);
  });
}
