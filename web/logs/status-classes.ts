// The six classes of status that the chart stacks, in stacking order from the bottom.

export const STATUS_CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"] as const;

export type StatusClass = (typeof STATUS_CLASSES)[number];

/** The meaning of each class. */
export const CLASS_MEANING: Record<StatusClass, string> = {
  "1xx": "informational",
  "2xx": "success",
  "3xx": "redirect",
  "4xx": "client error",
  "5xx": "server error",
  other: "no valid status",
};

const REASONS: Record<string, string> = {
  "100": "Continue",
  "101": "Switching Protocols",
  "200": "OK",
  "201": "Created",
  "202": "Accepted",
  "204": "No Content",
  "206": "Partial Content",
  "301": "Moved Permanently",
  "302": "Found",
  "303": "See Other",
  "304": "Not Modified",
  "307": "Temporary Redirect",
  "308": "Permanent Redirect",
  "400": "Bad Request",
  "401": "Unauthorized",
  "403": "Forbidden",
  "404": "Not Found",
  "405": "Method Not Allowed",
  "408": "Request Timeout",
  "409": "Conflict",
  "410": "Gone",
  "413": "Content Too Large",
  "416": "Range Not Satisfiable",
  "421": "Misdirected Request",
  "422": "Unprocessable Content",
  "426": "Upgrade Required",
  "429": "Too Many Requests",
  "431": "Header Fields Too Large",
  "444": "Closed without reply (nginx)",
  "499": "Client closed the request (nginx)",
  "500": "Internal Server Error",
  "501": "Not Implemented",
  "502": "Bad Gateway",
  "503": "Service Unavailable",
  "504": "Gateway Timeout",
};

/** Returns the class of a status as logged: "404" is "4xx". */
export function classOf(status: string): StatusClass {
  const found = /^[1-5]\d\d$/.test(status) ? `${status[0] ?? ""}xx` : "other";
  return found as StatusClass;
}

/** Returns the usual name of a status, or an empty string if it has none here. */
export function reasonOf(status: string): string {
  return REASONS[status] ?? "";
}
