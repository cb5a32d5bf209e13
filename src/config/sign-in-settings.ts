import { setting } from "./settings.ts";

/** The settings of who signs people and machines in besides the server itself. */
export const SIGN_IN_SETTINGS = {
  signInProviders: setting({
    flag: "--sign-in-providers",
    argument: "file",
    env: "CHARTROOM_SIGN_IN_PROVIDERS",
    default: "",
    help: "JSON file of the OpenID Connect providers with which people sign in (docs/sign-in.md); none by default",
    read: (text: string) => text,
  }),
  machineIssuers: setting({
    flag: "--machine-issuers",
    argument: "file",
    env: "CHARTROOM_MACHINE_ISSUERS",
    default: "",
    help: "JSON file of the issuers whose tokens service accounts may trust, such as CI systems (docs/sign-in.md); none by default",
    read: (text: string) => text,
  }),
} as const;
