export { createTemplate as default } from "./sqlite-template.ts";
