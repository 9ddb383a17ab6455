/** The component's core modules by name, each gzip in base64. The build makes them. */
declare module "#core-modules" {
  const modules: Record<string, string>;
  export default modules;
}

/** Source of the worker. The build makes it. */
declare const WORKER_SOURCE: string;
