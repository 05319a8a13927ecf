/** Bars of the days, each made of its models. Invariant: a picture only; the table beside it says the same in words. */
import { axisTop, type Bar } from "./figures";

interface Props {
  bars: Bar[];
  title: string;
  readable(value: number): string;
}

const WIDTH = 640;
const HEIGHT = 190;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;

/** Of its name, so that the last one is not cut off. */
const HALF_A_DAY = 20;

export function DayChart({ bars, title, readable }: Props) {
  const top = axisTop(Math.max(0, ...bars.map((bar) => bar.value)));
  const room = (WIDTH - LEFT) / Math.max(1, bars.length);
  const height = HEIGHT - BOTTOM - TOP;
  const y = (value: number) => TOP + height - (value / top) * height;
  const every = Math.ceil(bars.length / 7);
  const names = partNames(bars);
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={title}>
        {[0, 0.5, 1].map((share) => (
          <g key={share} className="chart-line">
            <line x1={LEFT} x2={WIDTH} y1={y(top * share)} y2={y(top * share)} />
            <text x={LEFT - 6} y={y(top * share) + 4} textAnchor="end">
              {readable(top * share)}
            </text>
          </g>
        ))}
        {bars.map((bar, index) => {
          const x = LEFT + index * room + room * 0.15;
          let below = 0;
          const parts = bar.parts.length > 0 ? bar.parts : [{ name: "", value: bar.value }];
          return (
            <g key={bar.label}>
              <title>{`${bar.label}: ${readable(bar.value)}`}</title>
              {parts.map((part) => {
                const from = below;
                below += part.value;
                return (
                  <rect
                    key={part.name}
                    className={`chart-part chart-part-${Math.max(0, names.indexOf(part.name)) % 6}`}
                    x={x}
                    width={room * 0.7}
                    y={y(below)}
                    height={Math.max(0, y(from) - y(below))}
                  />
                );
              })}
              {(bars.length - 1 - index) % every === 0 && (
                <text
                  className="chart-day"
                  x={Math.min(x + room * 0.35, WIDTH - HALF_A_DAY)}
                  y={HEIGHT - 6}
                  textAnchor="middle"
                >
                  {bar.label.slice(5)}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      {names.length > 1 && (
        <figcaption className="chart-names">
          {names.map((name, index) => (
            <span key={name}>
              <i className={`chart-swatch chart-part-${index % 6}`} /> {name}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function partNames(bars: readonly Bar[]): string[] {
  const sums = new Map<string, number>();
  for (const { parts } of bars) for (const part of parts) sums.set(part.name, (sums.get(part.name) ?? 0) + part.value);
  return [...sums].sort(([, a], [, b]) => b - a).map(([name]) => name);
}
