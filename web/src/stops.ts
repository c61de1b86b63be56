/** The stops of a context slider: powers of two and the halves between them, up to a model's own maximum. */

export const FIRST_STOP = 1024;

export function stopsUpTo(max: number): number[] {
  const stops: number[] = [];
  for (let power = FIRST_STOP; power < max; power *= 2) {
    stops.push(power);
    if (power * 1.5 < max) stops.push(power * 1.5);
  }
  stops.push(Math.max(max, FIRST_STOP));
  return stops;
}
