/** Members are listed by name and searched without regard to case, which SQL can do with folded text only. */
export const name = "0004-member-list";

export const statements = `
alter table account add column name_folded text not null default '';
alter table account add column search_text text not null default '';
update account set name_folded = fold(name), search_text = fold(name) || char(10) || fold(email);

create index member_by_joining on member (organization_id, created_at, id);
`;
