// An answer as rows or as a chart: the buttons, and what they choose. The choice is in the address.
import { ChartView } from "./chart.tsx";
import { Grid } from "./grid.tsx";
import type { RowSource } from "./kinds.ts";
import { choose, option } from "./route.ts";

const SHAPES = ["rows", "chart"];
const isChart = () => option("as", "rows") === "chart";

export function ShapeButtons() {
  return (
    <>
      {SHAPES.map((one) => (
        <button
          type="button"
          key={one}
          aria-pressed={isChart() === (one === "chart")}
          onClick={() => choose("as", one)}
        >
          {one}
        </button>
      ))}
    </>
  );
}

export function Shaped({ source }: { source: RowSource }) {
  return isChart() ? <ChartView source={source} /> : <Grid source={source} shared={true} />;
}
