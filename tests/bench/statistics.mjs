// What the parts of the benchmark make of their measurements.

/** Measurements of which a median is told. */
export const ROUNDS = 9;

export const median = (values) => quantile(values, 0.5);

export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/**
 * How a time grows with a size: the exponent p of time = c × size^p by least squares, 0 for flat and 1 for linear.
 * @param {[size: number, time: number][]} points
 */
export function growthExponent(points) {
  const logs = points.map(([size, time]) => [Math.log(size), Math.log(time)]);
  const mean = (index) => logs.reduce((sum, point) => sum + point[index], 0) / logs.length;
  const [x, y] = [mean(0), mean(1)];
  const above = logs.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  const below = logs.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return above / below;
}

/** What a measured exponent may be above the true one: as much as a logarithm, or a busy machine, and less than a power. */
export const TOLERANCE = 0.2;

/** By how much a time grows faster than it should; 0 where it does not. */
export const excess = (exponent, most) => (exponent > most + TOLERANCE ? exponent - most : 0);
