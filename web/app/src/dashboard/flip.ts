// Moves what changed its place: an element marked data-flip is slid from where
// it was after the previous rendering to where it is now.

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * Attaches to the container whose marked descendants are to be watched. With a
 * colour for those that arrived, a place is remembered while its element is
 * away, and the element's outline glows after the move.
 */
export function useFlip<E extends HTMLElement>(arrived?: string): RefObject<E | null> {
  const container = useRef<E>(null);
  const places = useRef(new Map<string, DOMRect>());
  useLayoutEffect(() => {
    const root = container.current;
    if (!root) return;
    const origin = root.getBoundingClientRect();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const seen = new Map(arrived ? places.current : []);
    for (const element of root.querySelectorAll<HTMLElement>("[data-flip]")) {
      const box = element.getBoundingClientRect();
      const place = new DOMRect(box.x - origin.x, box.y - origin.y, box.width, box.height);
      const before = places.current.get(element.dataset.flip!);
      seen.set(element.dataset.flip!, place);
      if (before && !still) slide(element, before.x - place.x, before.y - place.y, arrived);
    }
    places.current = seen;
  });
  return container;
}

function slide(element: HTMLElement, x: number, y: number, arrived?: string): void {
  // A place within an animation under way is not a change of place.
  if (Math.abs(x) + Math.abs(y) < 2 || element.getAnimations().some((a) => a.id === "flip")) return;
  const animation = element.animate(
    [{ transform: `translate(${x}px, ${y}px)`, zIndex: 1 }, { transform: "none", zIndex: 1 }],
    { duration: 450, easing: "cubic-bezier(.2,.8,.2,1)" },
  );
  animation.id = "flip";
  if (arrived) element.animate([{ outlineColor: arrived }, { outlineColor: "transparent" }], { duration: 2_000 });
}
