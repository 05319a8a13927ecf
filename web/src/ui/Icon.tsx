/**
 * The icons, drawn as strokes in one style.
 *
 * Invariant: an icon says nothing to a screen reader; what it stands on does.
 */

const PATHS = {
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  menu: "M4 7h16M4 12h16M4 17h16",
  sidebar: "M4 5h16v14H4zM9 5v14",
  close: "M6 6l12 12M18 6L6 18",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4 4",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 13h8l1-13M10 11v5M14 11v5",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "M5 12.5l4.5 4.5L19 7.500",
  again: "M19 12a7 7 0 1 1-2-5M19 4v4h-4",
  branch: "M7 5v14M7 5a1 1 0 1 0 0-.01M7 12h6a4 4 0 0 0 4-4V6M17 5a1 1 0 1 0 0-.01",
  up: "M7 11v9H4v-9zM7 11l4-7c2 0 2.500 1.500 2 3l-.8 3H18c1.500 0 2.300 1 2 2.300l-1.200 6c-.2 1-1 1.700-2 1.700H7",
  down: "M7 13V4H4v9zM7 13l4 7c2 0 2.500-1.500 2-3l-.8-3H18c1.500 0 2.300-1 2-2.300l-1.200-6c-.2-1-1-1.700-2-1.700H7",
  arrowDown: "M12 5v14M6 13l6 6 6-6",
  chevron: "M9 6l6 6-6 6",
  back: "M15 6l-6 6 6 6",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  attach: "M20 11l-8.500 8.500a5 5 0 0 1-7-7L13 4a3.500 3.500 0 0 1 5 5l-8.500 8.500a2 2 0 0 1-3-3L14 7",
  file: "M6 3h8l4 4v14H6zM14 3v5h4",
  files: "M8 3h7l4 4v11H8zM8 7H5v14h10v-3",
  terminal: "M4 5h16v14H4zM8 10l3 2.500L8 15M13 15h3",
  globe: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM4 12h16M12 4c3 3 3 13 0 16M12 4c-3 3-3 13 0 16",
  list: "M9 7h11M9 12h11M9 17h11M5 7h.01M5 12h.01M5 17h.01",
  people: "M9 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM3 19c0-3 3-5 6-5s6 2 6 5M16 6a3 3 0 0 1 0 5M18 14c2 .6 3 2.500 3 5",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  question:
    "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM9.500 9.500c0-1.500 1-2.500 2.500-2.500s2.500 1 2.500 2.300c0 2-2.500 2-2.500 4.200M12 17h.01",
  tool: "M14 6a4 4 0 0 0 5 5l-8 8a2.500 2.500 0 0 1-4-4zM14 6l3-2 3 3-2 3",
  gear: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM19 12l2 1-1 3-2.200-.3-1.500 1.500.3 2.300-3 1-1.100-2h-2l-1 2-3-1 .2-2.300-1.500-1.500L3 16l-1-3 2-1 0 0-2-1 1-3 2.200.3 1.500-1.500L6.500 4.500l3-1 1 2h2l1.100-2 3 1-.3 2.300 1.500 1.500L20 8l1 3z",
  timeline: "M5 6h5M5 12h10M5 18h7M18 6h.01M18 12h.01M18 18h.01",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  spark: "M12 4l1.800 5.200L19 11l-5.200 1.800L12 18l-1.800-5.200L5 11l5.200-1.800z",
  undo: "M9 7L5 11l4 4M5 11h9a5 5 0 0 1 0 10h-3",
  flag: "M6 21V4M6 5h11l-2 4 2 4H6",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.7"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
