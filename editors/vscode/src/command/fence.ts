/** What results say of the fence: an editor runs what it runs as the person does. */
export const FENCE = { enforced: 'none', why: 'it ran in the editor' } as const;
