export { removeTemplate as default } from "./sqlite-template.ts";
