/** An error of the API (`application/problem+json`), or of the network (`status` 0). */
export class Problem extends Error {
  constructor({ status = 0, code = "network", title = "", detail = "", errors = [] }) {
    super(detail || title);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.title = title;
    this.detail = detail || title;
    /** `[{pointer, detail, nearest?}]`, pointers relative to the params: "/heads". */
    this.errors = errors.map((error) => ({
      ...error,
      pointer: (error.pointer ?? "").replace(/^\/params(?=\/|$)/, "") || "/",
    }));
  }
}
