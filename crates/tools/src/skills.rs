//! The tools around skills: finding one among many, reading about one, and writing one.
//!
//! Invariant: finding and reading change nothing; what is written goes through scanner and review, whoever asks.

mod describe_skill;
mod skill_manage;
mod skill_search;

pub(crate) use describe_skill::DescribeSkill;
pub(crate) use skill_manage::SkillManage;
pub(crate) use skill_search::SkillSearch;
