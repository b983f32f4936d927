// The answers of a gateway (docs/formats/http.md).
export type State = "running" | "done" | "failed" | "cancelled" | "expired";
export interface JobEntry {
  id: string;
  state: State;
  created: number;
  application: string;
  failed: string[];
}
export interface Outcome {
  state: State;
  reason: string;
  at: number;
  failed: Record<string, string>;
}
export interface Table {
  batches: number | null;
  arrived: number;
  mapped: number;
}
export interface Status {
  run: string;
  outcome: Outcome | null;
  tables: Record<string, Table>;
  folds: Record<string, [number, number]>;
  results: string[];
  queries: string[];
  reads: Record<string, string[]>;
  previews: string[];
  growing: string[];
  application: string;
  created: number;
  failed: Record<string, string>;
}
export interface Task {
  kind: string;
  name: string;
  number: number;
  worker: string;
  began: number;
  ended: number;
  end: string;
  deliveries?: number;
  bytes_in?: number;
  bytes_out?: number;
  stages?: Record<string, [number, number]>;
  reason?: string;
}
export interface PlanNode {
  name: string;
  lines: string[];
  shape: string;
  group: string;
  sql: string;
  stage: string;
}
export interface PlanEdge {
  source: string;
  target: string;
  label: string;
  dotted: boolean;
}
export interface PlanGraph {
  title: string;
  nodes: PlanNode[];
  edges: PlanEdge[];
}
export interface Column {
  name: string;
  type: string;
}
export interface About {
  query: string;
  title: string;
  rows: number;
  bytes: number;
  columns: Column[];
  seconds?: number; // of a run without a cluster
}
export type Value = string | number | boolean | null | Value[] | { [name: string]: Value };
export type Row = Record<string, Value>;
export interface Process {
  name: string;
  kind: string;
  host: string;
  state: string;
  incarnation: number;
  restarts: number;
  heard_seconds: number | null;
  progress: number;
  memory: number;
  pid: number;
  detail: string;
  address: string;
  version: string;
  cpu: number;
}
export interface Health {
  ok: boolean;
  seconds: number;
  reason: string;
}
export interface Cluster {
  gateway: string;
  gateways: string[];
  admin: boolean;
  chaos: boolean;
  leader: string;
  term: number;
  medic: string;
  processes: Process[];
  lanes: Record<string, number>;
  store: Health;
  broker: Health;
}
export interface Sample {
  at: number;
  leader: string;
  term: number;
  processes: {
    name: string;
    state: string;
    incarnation: number;
    memory?: number;
    cpu?: number;
    detail?: string;
  }[];
}
/** Rows of an answer that still grows, in the columns that are final. */
export interface SoFar {
  run: string;
  covered: Record<string, number>;
  total: number;
  columns: Column[];
  later: string[];
  rows: Row[] | null;
}
/** The rows of one answer, read by page. */
export interface RowSource {
  about: About;
  rows(offset: number, limit: number): Promise<Row[]>;
}
/** Everything that is shown of a job. A report holds it as JSON. */
export interface JobData {
  job: string;
  status: Status;
  plans: Record<string, PlanGraph>;
  tasks: Task[];
  samples: Sample[];
}
export interface ReportData extends JobData {
  made: number;
  results: Record<string, { about: About; rows: Row[] }>;
  rejects: Row[];
}
