/** Lets agents have servers of the Model Context Protocol. */
export const name = "0031-agent-mcp-servers";

export const statements = `
alter table agent add column mcp_servers text not null default '[]';
`;
